//go:build !linux

package ledger

// unmount does nothing: runs mount disks on Linux only.
func unmount(string) (bool, error) { return false, nil }
