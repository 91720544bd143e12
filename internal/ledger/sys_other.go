//go:build !unix

package ledger

import (
	"errors"
	"os"
)

// Without flock a live run cannot be distinguished from a dead one: there are no ledgers here.
func lock(*os.File) (bool, error) { return false, errors.ErrUnsupported }

func private(os.FileInfo) bool { return true }
