#pragma once

namespace weft::lab {

/// Runs one contender for the lab, which started this process with a socket and a memory as descriptors 3 and
/// 4, until the socket closes. Requests and answers are JSON, one a message. Returns the exit status.
int serve_contender();

}  // namespace weft::lab
