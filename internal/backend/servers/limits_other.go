//go:build !unix

package servers

// maxFiles is the limit of open files; 0 if it is unknown.
func maxFiles() uint64 { return 0 }

// maxMemory is the limit of the address space; 0 if it is unknown.
func maxMemory() uint64 { return 0 }
