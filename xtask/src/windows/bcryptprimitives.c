/* The one function of bcryptprimitives.dll that the standard library of Rust needs, for versions of Wine without it. */
#include <windows.h>

/* RtlGenRandom, by the name under which advapi32.dll has it. */
BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length)
{
    while (length > 0) {
        ULONG piece = length < 0x10000 ? (ULONG)length : 0x10000;
        if (!SystemFunction036(data, piece))
            return FALSE;
        data += piece;
        length -= piece;
    }
    return TRUE;
}
