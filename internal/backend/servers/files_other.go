//go:build !unix

package servers

// maxFiles is the limit of open files; 0 if it is unknown.
func maxFiles() uint64 { return 0 }
