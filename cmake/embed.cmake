# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0

# Writes the bytes of the file IN into the C++ source OUT, as kServedDescriptors.
file(READ "${IN}" bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUT}" "namespace tensord::wire {
extern const unsigned char kServedDescriptors[];
extern const unsigned long kServedDescriptorsBytes;
const unsigned char kServedDescriptors[] = {${bytes}};
const unsigned long kServedDescriptorsBytes = ${size};
}  // namespace tensord::wire
")
