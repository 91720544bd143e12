//go:build !unix

package filelock

import (
	"errors"
	"os"
)

func try(*os.File) (bool, error) { return false, errors.ErrUnsupported }

func wait(*os.File) error { return errors.ErrUnsupported }
