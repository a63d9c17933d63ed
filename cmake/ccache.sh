#!/bin/sh
# Usage: ccache.sh SLOPPINESS CCACHE COMPILER ARGUMENT...
# ccache, with precompiled headers cached by the contents of all headers. Such a file holds the checksums of what it was made
# from; by preprocessed text alone the cache would return one whose headers differ in comments, and GCC would read those again.
export CCACHE_SLOPPINESS=$1
shift
case " $* " in
*" c++-header "*)
  root=$(dirname "$0")/..
  CCACHE_EXTRAFILES=$(find "$root/include" "$root/src" "$root/conformance" "$root/tests" -name '*.h' | LC_ALL=C sort | paste -sd: -)
  export CCACHE_EXTRAFILES
  ;;
esac
exec "$@"
