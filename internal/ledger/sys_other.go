//go:build !unix

package ledger

import (
	"errors"
	"os"
)

// Without flock nobody can tell a running run from a dead one: ledgers are not kept there.
func lock(*os.File) (bool, error) { return false, errors.ErrUnsupported }

func private(os.FileInfo) bool { return true }
