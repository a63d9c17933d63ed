// A shared object, but not one of ours.
extern "C" __attribute__((visibility("default"))) int something_else() { return 42; }
