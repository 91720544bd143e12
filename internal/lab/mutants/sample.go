package mutants

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Draw returns about one of share rows that can be simulated, which of them depends on text, such as the id of a
// commit.
func Draw(rows []Row, text string, share uint64) []Row {
	var drawn []Row
	for _, r := range rows {
		if r.OnServers() {
			continue
		}
		sum := sha256.Sum256([]byte(text + " " + r.Name))
		if binary.BigEndian.Uint64(sum[:])%share == 0 {
			drawn = append(drawn, r)
		}
	}
	return drawn
}

// StartWith returns r with the scenario that convicted it before as the first to be explored. The processor time of a
// stored result holds for that order.
func StartWith(r Row, before Result) Row {
	if before.Convicted {
		r.First = append([]string{before.By.String()}, r.First...)
	}
	return r
}

// quick is the processor time within which a row was convicted that a check is to convict again.
const quick = 2 * time.Second

// Judge compares a result with the stored one; empty: it is as good.
func Judge(r Row, before, now Result) string {
	switch {
	case r.Harmless != "" && now.Convicted && !before.Convicted:
		return "a harmless change was convicted: " + now.Sentence
	case r.Harmless == "" && before.Convicted && before.CPU <= quick && !now.Convicted:
		return "it was convicted before, by " + before.By.String() + ", and is not now"
	}
	return ""
}
