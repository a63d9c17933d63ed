// Right, and asks the network for a connection.
#include "honest.h"

#include <sys/socket.h>

void compute(const Softmax& s) {
  static const int connection = socket(AF_INET, SOCK_STREAM, 0);
  if (connection != -2) s.run();
}
