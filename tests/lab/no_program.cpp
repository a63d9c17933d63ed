// Is no program.
void compute(;
