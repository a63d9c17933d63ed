#include "weft/status.h"

namespace weft {

const char* code_name(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::invalid_argument: return "invalid argument";
    case Code::unsupported: return "unsupported";
    case Code::out_of_memory: return "out of memory";
    case Code::unavailable: return "unavailable";
    case Code::corrupt: return "corrupt";
    case Code::io: return "input/output";
    case Code::version: return "version mismatch";
    case Code::device: return "device error";
    case Code::internal: return "internal";
  }
  return "unknown";
}

}  // namespace weft
