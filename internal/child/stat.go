package child

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Stat is what the kernel says about process pid: its state (one letter: R
// running, S sleeping, T stopped, Z dead but not waited for) and when it was
// started, in clock ticks since boot. Number and start together name a process;
// the number alone is given out again. The error is about /proc, which only
// Linux has; it wraps [os.ErrNotExist] if there is no such process.
func Stat(pid int) (state byte, started uint64, err error) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("looking at process %d: %w", pid, err)
	}
	return parseStat(line)
}

// parseStat reads one line of /proc/PID/stat: number, (name), state, and the
// start time as field 22. The name may hold spaces and brackets (proc(5)), so
// fields are counted from the last bracket.
func parseStat(line []byte) (state byte, started uint64, err error) {
	const startField = 22 - 3 // counted from the state, which is field 3
	at := bytes.LastIndexByte(line, ')')
	if at < 0 {
		return 0, 0, fmt.Errorf("reading %q as a process state: no name in brackets", line)
	}
	fields := bytes.Fields(line[at+1:])
	if len(fields) <= startField || len(fields[0]) != 1 {
		return 0, 0, fmt.Errorf("reading %q as a process state: too short", line)
	}
	started, err = strconv.ParseUint(string(fields[startField]), 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("reading %q as a process state: %w", line, err)
	}
	return fields[0][0], started, nil
}
