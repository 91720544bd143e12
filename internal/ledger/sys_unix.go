//go:build unix

package ledger

import (
	"os"
	"syscall"
)

// private reports whether only this user can write there.
func private(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid() && info.Mode().Perm()&0o022 == 0
}
