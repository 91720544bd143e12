package locks

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockchaos/lockchaos/client"
)

// TestReturnedWithin: an acquire is late only when the limit is over.
func TestReturnedWithin(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		late  bool
	}{{999 * time.Millisecond, false}, {1001 * time.Millisecond, true}} {
		synctest.Test(t, func(t *testing.T) {
			if _, late := returnedWithin(time.Second, returnsAfter(c.takes)); late != c.late {
				t.Errorf("an acquire that takes %v: late = %v", c.takes, late)
			}
		})
	}
}

// returnsAfter is an acquire that takes that long.
func returnsAfter(d time.Duration) <-chan acquired[client.Grant] {
	returned := make(chan acquired[client.Grant], 1)
	time.AfterFunc(d, func() { returned <- acquired[client.Grant]{} })
	return returned
}

// stoppedHere is set in the process that TestStoppedWhileClosing stops.
const stoppedHere = "LOCKCHAOS_TEST_STOPPED"

// TestStoppedWhileClosing: the time for which a process was stopped does not make an acquire late.
func TestStoppedWhileClosing(t *testing.T) {
	if os.Getenv(stoppedHere) != "" {
		returned := make(chan acquired[client.Grant], 1)
		began := time.Now()
		go func() {
			<-time.After(100 * time.Millisecond)
			_, _ = io.WriteString(os.Stdout, "waits\n")
			<-time.After(400 * time.Millisecond) // sleeps before its next request, during which the process is stopped
			<-time.After(50 * time.Millisecond)
			returned <- acquired[client.Grant]{}
		}()
		_, late := returnedWithin(time.Second, returned)
		if time.Since(began) < time.Second {
			t.Error("it was not stopped")
		}
		if late {
			t.Error("late")
		}
		return
	}
	program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStoppedWhileClosing$")
	program.Env = append(os.Environ(), stoppedHere+"=1")
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != "waits\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := program.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-time.After(1200 * time.Millisecond) // how long it is stopped
	if err := program.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(lines)
	if err := program.Wait(); err != nil {
		t.Errorf("%v: %s", err, strings.TrimSpace(string(said)))
	}
}
