#pragma once
#include <cstddef>
#include <cstdint>

// Handing the processor from one stack to another. ucontext does it too, with a system call for each, which
// takes most of the time of a run.
#if defined(__x86_64__)

extern "C" void weft_switch(void** from, void* to);
asm(R"(
  .text
  .local weft_switch
  .type weft_switch, @function
weft_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

namespace weft::emulated {

/// A place to go on at: the top of a stack that somebody left.
class Context {
 public:
  /// Begins at `enter`, which never returns, on this stack.
  void begin(std::byte* stack, size_t bytes, void (*enter)()) {
    auto* top = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(stack + bytes) / 16 * 16);
    *--top = nullptr;  // where a call would have left its address: the stack is aligned as after one
    *--top = reinterpret_cast<void*>(enter);
    for (int i = 0; i < 6; ++i) *--top = nullptr;  // registers
    top_ = top;
  }
  /// Leaves this one and goes on at `to`.
  void leave_for(Context& to) { weft_switch(&top_, to.top_); }

 private:
  void* top_ = nullptr;
};

}  // namespace weft::emulated

#else
#include <ucontext.h>

namespace weft::emulated {

class Context {
 public:
  void begin(std::byte* stack, size_t bytes, void (*enter)()) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack, context_.uc_stack.ss_size = bytes, context_.uc_link = nullptr;
    makecontext(&context_, enter, 0);
  }
  void leave_for(Context& to) { swapcontext(&context_, &to.context_); }

 private:
  ucontext_t context_{};
};

}  // namespace weft::emulated

#endif
