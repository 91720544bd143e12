package lock

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of regressions into docs/locks.md")

// bugs are where the bugs were reported, or in which project's code they were
// read, that tests of this package are named after: B for the first, S for the second.
func bugs() map[string]string {
	return map[string]string{
		"B01": "redisson#7367", "B02": "redisson#7272", "B03": "redisson#7251", "B04": "redisson#7098",
		"B05": "redisson#4871", "B06": "redisson#6651", "B07": "redisson#4178", "B08": "redisson#4109",
		"B09": "redisson#4822", "B10": "redisson#4706", "B11": "redisson#5256", "B12": "redisson#6920",
		"B13": "redisson#6025", "B14": "redisson#5761", "B15": "redisson#5762", "B16": "redisson#4744",
		"B17": "redisson#1542", "B18": "redisson#4217", "B19": "redisson#891", "B20": "redisson#1110",
		"B21": "redisson#1604", "B22": "redisson#4023", "B23": "redisson#3004", "B24": "redisson#1104",
		"B25": "redisson#2883", "B26": "redisson#5019", "B27": "redisson#5503", "B28": "redisson#5989",
		"B29": "redisson#2172", "B30": "redisson#624", "B31": "redisson#467", "B32": "redisson#1606",
		"B33": "redisson#2714", "B34": "redisson#1626", "B35": "redisson#2515", "B36": "redisson#3712",
		"B37": "redisson#6144", "B38": "redisson#6483", "B39": "redisson#5697", "B40": "redisson#6867",
		"B41": "redisson 4.2.0", "B42": "redisson#4818", "B43": "redisson#6664", "B44": "redisson#4349",
		"B45": "redisson#4678", "B46": "redisson#3573", "B47": "redisson#2045", "B48": "redisson#2304",
		"B49": "redisson#6026", "B50": "redisson#4064", "B51": "redisson#6510", "B52": "go-redis#2985",
		"B53": "redsync#72", "B54": "redsync#186", "B55": "redsync#140", "B56": "redsync#125",
		"B57": "redsync#158", "B58": "open-match#1576", "B59": "rueidis#457", "B60": "rueidis#602",
		"B61": "rueidis#653", "B62": "node-redlock#168", "B63": "node-redlock#65", "B64": "redis-py#3847",
		"B65": "redis-py#4258", "B66": "redis-py#490", "B67": "redis-py#818", "B68": "ShedLock#2583",
		"B69": "ShedLock#74", "B70": "RedLock.net#93", "B71": "RedLock.net#64", "B72": "redlock-rb#36",
		"B73": "redis-semaphore#205", "B74": "CURATOR-79", "B75": "CURATOR-206", "B76": "CURATOR-604",
		"B77": "CURATOR-678", "B78": "CURATOR-335", "B79": "CURATOR-307", "B80": "etcd#11456",
		"B81": "etcd#10811", "B82": "etcd#12528", "B83": "etcd#11360", "B84": "etcd#664",
		"B85": "spring-integration#10471",
		"S01": "Redisson fenced lock", "S02": "Redisson multi-lock", "S03": "Redisson multi-lock",
		"S04": "Redisson RedLock", "S05": "Redisson fair lock", "S06": "Redisson fair lock",
		"S07": "Redisson fair lock", "S08": "Redisson write lock", "S09": "Redisson write lock",
		"S10": "Redisson read lock", "S11": "Redisson read watchdog", "S12": "Redisson watchdog",
		"S13": "Redisson semaphore, latch", "S14": "Redisson semaphore", "S15": "Redisson semaphore",
		"S16": "Redisson permits", "S17": "Redisson readers-writer", "S18": "Redisson fenced lock",
		"S19": "Redisson fenced lock", "S20": "rueidislock", "S21": "rueidislock", "S22": "rueidislock",
		"S23": "redsync", "S24": "redsync", "S25": "redsync over go-redis", "S26": "redsync",
		"S27": "bsm/redislock", "S28": "bsm/redislock", "S29": "node-redlock", "S30": "node-redlock",
		"S31": "node-redlock", "S32": "redis-py", "S33": "pottery", "S34": "ShedLock",
		"S35": "Curator multi-lock", "S36": "etcd mutex", "S37": "go-redis defaults",
	}
}

// fewest is how many of the bugs must have a test of their own.
const fewest = 60

// Bugs of other locks are tests here, by name; the table in docs/locks.md is
// made from the names, so that it says nothing that no test does.
func TestRegressionsAreCounted(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`(?m)^func Test((?:[BS]\d\d)+)(\w+)\(t \*testing\.T\)`)
	paths, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	known, covered := bugs(), map[string]bool{}
	var rows []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			var sources []string
			for i := 0; i < len(m[1]); i += 3 {
				id := m[1][i : i+3]
				covered[id] = true
				if known[id] == "" {
					t.Errorf("%s: no bug is called %s", path, id)
				}
				if !slices.Contains(sources, known[id]) {
					sources = append(sources, known[id])
				}
			}
			rows = append(rows, fmt.Sprintf("| %s | `Test%s%s` |", strings.Join(sources, ", "), m[1], m[2]))
		}
	}
	slices.Sort(rows)
	if len(covered) < fewest {
		t.Errorf("tests are named after %d bugs, want %d or more", len(covered), fewest)
	}
	table := fmt.Sprintf("%d bugs, %d tests.\n\n| reported or read in | test |\n| --- | --- |\n%s\n",
		len(covered), len(rows), strings.Join(rows, "\n"))
	compareDocs(t, table)
}

// compareDocs holds the part of docs/locks.md between its marks against want.
func compareDocs(t *testing.T, want string) {
	t.Helper()
	const path, begin, end = "../docs/locks.md", "<!-- regressions -->\n", "<!-- /regressions -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no table of regressions: put %q and %q into it", path, begin, end)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is old; run go test ./lock -run TestRegressionsAreCounted -update (-want +got):\n%s", path, diff)
	}
}
