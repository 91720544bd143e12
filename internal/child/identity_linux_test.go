package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// TestStatusOfAnEndedProcess: a process may end between the opening of its file in /proc and the reading of it.
func TestStatusOfAnEndedProcess(t *testing.T) {
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_ = c.Process.Kill()
	_ = c.Wait()
	_, err = io.ReadAll(file)
	if errors.Is(err, os.ErrNotExist) || !errors.Is(missing(err), os.ErrNotExist) {
		t.Errorf("%v, and then %v: want ErrNotExist", err, missing(err))
	}
	if _, err := Stat(c.Process.Pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want ErrNotExist", err)
	}
}

// TestEndingFromTheSignalOn: a killed process is ending from the signal until its number is free, and not before.
func TestEndingFromTheSignalOn(t *testing.T) {
	for range 100 {
		c := exec.Command("sleep", "600")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if Ending(c.Process.Pid) {
			t.Error("a live process is ending")
		}
		_ = c.Process.Kill()
		if !Ending(c.Process.Pid) {
			s, err := Stat(c.Process.Pid)
			t.Errorf("a killed process is not ending: %+v, %v", s, err)
		}
		_ = c.Wait()
		if !Ending(c.Process.Pid) {
			t.Error("a process that was waited for is not ending")
		}
	}
}
