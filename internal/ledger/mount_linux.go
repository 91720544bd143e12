package ledger

import (
	"errors"

	"golang.org/x/sys/unix"
)

// unmount detaches a mount (MNT_DETACH, umount2(2)), which works even if its server
// is dead. False: nothing was mounted there.
func unmount(path string) (bool, error) {
	err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil, err
}
