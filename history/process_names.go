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

// owner returns the owner of e: the one it names, else the one for which its process last acquired
// the key, else the process itself.
func (b *Builder) owner(e numbered, key int32) int32 {
	at := processKey{e.Process, key}
	if e.Value != nil && e.Value.Owner != "" {
		o := intern(&b.h.Owners, b.owners, e.Value.Owner)
		if e.F == Acquire || e.F == Try {
			b.holder[at] = o
		}
		return o
	}
	if o, ok := b.holder[at]; ok && e.F != Acquire && e.F != Try {
		return o
	}
	return intern(&b.h.Owners, b.owners, input.ProcessOwner(int(e.Process)))
}

func intern(names *[]string, index map[string]int32, name string) int32 {
	if i, ok := index[name]; ok {
		return i
	}
	i := int32(len(*names))
	*names = append(*names, name)
	index[name] = i
	return i
}
