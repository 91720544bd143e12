package locktest

import (
	"strconv"
	"strings"
)

// calls sums the calls of the commands in the answer to INFO commandstats.
func calls(info string, commands ...string) int64 {
	var sum int64
	for line := range strings.Lines(info) {
		for _, command := range commands {
			rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls=")
			if !ok {
				continue
			}
			count, _, _ := strings.Cut(rest, ",")
			n, _ := strconv.ParseInt(count, 10, 64)
			sum += n
		}
	}
	return sum
}
