// Files of a test case: read into a buffer, and written from one.
#pragma once
#include <acl/acl.h>
#include <sys/stat.h>
#include <fstream>

namespace PtoTestCommon {
inline bool isFile(const std::string& path)
{
    struct stat facts;
    return stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}
// Fills the start of a buffer; false for a missing or empty file, and for one larger than the buffer.
inline bool ReadFile(const std::string& path, size_t& size, void* buffer, size_t room)
{
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file || !isFile(path)) return false;
    const auto bytes = size_t(file.tellg());
    if (bytes == 0 || bytes > room) return false;
    file.seekg(0);
    file.read(static_cast<char*>(buffer), std::streamsize(bytes));
    size = bytes;
    return bool(file);
}
inline bool WriteFile(const std::string& path, const void* buffer, size_t size)
{
    if (buffer == nullptr) return false;
    std::ofstream file(path, std::ios::binary);
    file.write(static_cast<const char*>(buffer), std::streamsize(size));
    file.close();
    if (file) pto_host::calls.wrote(path.c_str());
    return bool(file);
}
}
