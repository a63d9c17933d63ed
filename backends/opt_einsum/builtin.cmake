# Built in beside native, whose kernel of einsum it is.
if(NOT USE_NATIVE OR NOT USE_REFERENCE OR NOT WEFT_HIGHWAY_HEADERS)
  set(WEFT_BACKEND_SKIP "it is made of native's kernel of einsum")
endif()
