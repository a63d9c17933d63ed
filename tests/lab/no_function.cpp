// Defines another function than the one that is called.
extern "C" int another() { return 1; }
