// Bounded copies that host code of tests uses.
#pragma once
#include <cstring>
inline int memcpy_s(void* d, size_t room, const void* s, size_t n) { if (n > room) return 1; std::memcpy(d, s, n); return 0; }
inline int strncpy_s(char* d, size_t room, const char* s, size_t n)
{
    const size_t length = strnlen(s, n);
    if (length >= room) return 1;
    std::memcpy(d, s, length), d[length] = 0;
    return 0;
}
inline int strcpy_s(char* d, size_t room, const char* s) { return strncpy_s(d, room, s, room); }
inline int memset_s(void* d, size_t room, int v, size_t n) { if (n > room) return 1; std::memset(d, v, n); return 0; }
