#pragma once
#include <span>
#include <string>

#include "program/program.h"

// The bytes of the sections "plan", "origin", "test vectors", "device code", "beside" and "weights".
namespace weft::program {

std::string write_plan(const CompiledProgram& program);
std::string write_origin(const CompiledProgram& program);

/// All of the program but its blobs and origin. Holds no promise beyond memory safety: verify() is the next
/// step.
Result<CompiledProgram> read_plan(std::span<const std::byte> bytes);
Status read_origin(std::span<const std::byte> bytes, CompiledProgram& program);

/// Nothing for a program without tests.
std::string write_tests(const CompiledProgram& program);
/// The tensors stay where they are, in memory of `owner`.
Status read_tests(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner,
                  CompiledProgram& program);
/// The tests have the program's ports, of their types and of one size for each symbol.
Status check_tests(const CompiledProgram& program);

/// Nothing for a program without code of devices. What is read stays where it is, in memory of `owner`.
std::string write_device_code(const CompiledProgram& program);
Status read_device_code(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner,
                        CompiledProgram& program);

/// A program file up to its first blob. With `beside`, the section of that name, it has no blobs.
std::string write_head(const CompiledProgram& program, std::string_view beside = {});

/// The sections that tie a program to the file that its blobs are in: "beside" in the one, "weights" in the
/// other.
std::string write_beside(const CompiledProgram& program, std::string_view file);
std::string write_weights(const CompiledProgram& program);
/// Gives the program the blobs of the file that `beside` names. What is missing there, there in vain, of
/// another type, or changed is listed all at once.
Status take_beside(std::span<const std::byte> beside, const OpenWeights& open, CompiledProgram& program);

void append_text(std::string& out, std::string_view s);
void append_count(std::string& out, uint64_t n);
/// Removes one length and as many bytes from the front of `rest`.
Result<std::span<const std::byte>> take_bytes(std::span<const std::byte>& rest);
Result<std::string> take_text(std::span<const std::byte>& rest);

}  // namespace weft::program
