package history

import (
	"regexp"
	"strconv"

	"github.com/lockchaos/lockchaos/history/internal/input"
)

// namedNumber finds such numbers in a text.
var namedNumber = regexp.MustCompile(`\b(client|process) ([0-9]{7,10})\b`)

// NameProcesses replaces "client 1000003" and "process 1000003" in text by the name of the process, for histories whose
// processes have names. Other text is unchanged.
func (h *History) NameProcesses(text string) string {
	names := h.ProcessNames
	if len(names) == 0 {
		return text
	}
	return namedNumber.ReplaceAllStringFunc(text, func(match string) string {
		parts := namedNumber.FindStringSubmatch(match)
		n, err := strconv.Atoi(parts[2])
		if n -= input.FirstNamed; err != nil || n < 0 || n >= len(names) {
			return match
		}
		return parts[1] + " " + names[n]
	})
}
