// An exception that nobody catches ends the program: C++'s own handler prints its type first, for which it
// would bring in all that reads mangled names.
#include <cstdlib>

namespace __gnu_cxx {

void __verbose_terminate_handler() { std::abort(); }

}  // namespace __gnu_cxx
