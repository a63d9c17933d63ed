"""Reads llvm-readelf's symbols and notes of an AMD GPU's object; fails if it has no kernels or an undefined symbol."""
import re
import sys

text = sys.stdin.read()
kernels = len(re.findall(r"\.symbol:\s+\S+\.kd", text))
undefined = [name for name in re.findall(r"UND (\S+)$", text, re.M)]
registers = [int(n) for n in re.findall(r"\.vgpr_count:\s+(\d+)", text)]
spilled = [int(n) for n in re.findall(r"\.vgpr_spill_count:\s+(\d+)", text)]
print(f"{sys.argv[1]}: {kernels} kernels, at most {max(registers, default=0)} vector registers, "
      f"{sum(n > 0 for n in spilled)} that spill")
if not kernels or undefined or len(registers) == 0:
    sys.exit(f"{sys.argv[1]}: " + ("undefined: " + ", ".join(undefined) if undefined else "no kernels"))
