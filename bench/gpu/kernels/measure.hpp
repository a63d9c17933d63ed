#pragma once
#include <chrono>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "weft/jit.h"
#include "weft/ops.h"

// What all measurements of bench/gpu/kernels share.
namespace weft::bench {

using Clock = std::chrono::steady_clock;
using Op = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

constexpr int kRuns = 4, kRounds = 11;

/// The median.
double middle(std::vector<double> times);

/// Seconds of a run of a program: the median of some rounds of runs.
double seconds(Compiled& program, const std::vector<Tensor>& inputs);

/// Numbers in [-1, 1) from a seed.
Tensor random(uint64_t seed, std::initializer_list<int64_t> shape, DType dtype = DType::bf16);

InputSpec spec_of(const std::string& name, const Tensor& t);

/// A line of JSON: the time of an op, and the rate at which it moves these bytes.
void print(const std::string& op, int64_t rows, int64_t columns, double time, double bytes);

/// The largest difference of any result from what f32 gives, as a share of the largest number there.
double error_of(const std::vector<Tensor>& got, const std::vector<Tensor>& exact);

/// One op: the kernels that ran, its error, the time of a call, and operations a second.
void report(const std::string& name, const Op& f, const std::vector<Tensor>& inputs,
            const std::vector<Tensor>& exact, double operations, uint8_t precision);

/// Prints an error, and whether it is at most some roundings of the dtype.
bool show_error(const std::string& what, double error, DType dtype);

// The measurements, each of which prints lines of JSON; checks return whether all errors are small enough.
void measure_rows();
bool check_rows();
void measure_skinny();
bool check_skinny();
void measure_f8();
void measure_heads();
bool check_heads();
void measure_images();
void measure_adamw();
void measure_add();
void measure_decoding(const std::string& folder);
bool check_peers();

}  // namespace weft::bench
