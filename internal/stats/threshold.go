package stats

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/nearest"
)

// freeWhileWaited is the metric of [LongestFree].
const freeWhileWaited = "free_while_waited.max"

// Threshold is a limit for a metric, such as "acquire.p99 < 2s".
type Threshold struct {
	Metric string // one of metrics
	Op     string // <, <=, > or >=
	Limit  int64  // nanoseconds, or a number for a metric that counts
}

// count is the suffix of metrics that are numbers; the others are durations.
const count = ".count"

// metrics are the names of all metrics: OPERATION.QUANTILE, the number of operations that succeeded, and
// freeWhileWaited.
func metrics() []string {
	names := []string{freeWhileWaited}
	for _, op := range timed() {
		for _, of := range []string{".p50", ".p90", ".p99", ".max", count} {
			names = append(names, op.String()+of)
		}
	}
	return names
}

// thresholdText has the parts of a threshold.
var thresholdText = regexp.MustCompile(`^\s*([a-z0-9_.]+)\s*(<=|>=|<|>)\s*(\S+)\s*$`)

// ParseThreshold reads "METRIC < LIMIT"; a limit is a duration, such as 500ms, or for a count a number.
func ParseThreshold(text string) (Threshold, error) {
	m := thresholdText.FindStringSubmatch(text)
	if m == nil {
		return Threshold{}, fmt.Errorf("%q is not a threshold; write METRIC < LIMIT, such as acquire.p99 < 2s", text)
	}
	t := Threshold{Metric: m[1], Op: m[2]}
	if !slices.Contains(metrics(), t.Metric) {
		return t, fmt.Errorf("unknown metric %q%s", t.Metric, nearest.Hint(t.Metric, metrics()))
	}
	var err error
	if t.counts() {
		t.Limit, err = strconv.ParseInt(m[3], 10, 64)
	} else {
		var d time.Duration
		d, err = time.ParseDuration(m[3])
		t.Limit = int64(d)
	}
	switch {
	case err != nil && t.counts():
		return t, fmt.Errorf("%s is compared with a number, not %q", t.Metric, m[3])
	case err != nil:
		return t, fmt.Errorf("%s is compared with a duration, such as 500ms, not %q", t.Metric, m[3])
	case t.Limit < 0:
		return t, fmt.Errorf("%s is never negative: %q", t.Metric, m[3])
	}
	return t, nil
}

func (t Threshold) counts() bool { return strings.HasSuffix(t.Metric, count) }

// Limits is "< 2 s".
func (t Threshold) Limits() string { return t.Op + " " + t.text(t.Limit) }

func (t Threshold) text(value int64) string {
	if t.counts() {
		return strconv.FormatInt(value, 10)
	}
	return format.Duration(time.Duration(value))
}

// Test compares a history with the threshold. An operation that never succeeded has no latency: actual is then empty,
// and the threshold is not met.
func (t Threshold) Test(h *history.History, holds []Held) (actual string, met bool) {
	value, measured := t.measure(h, holds)
	if !measured {
		return "", false
	}
	switch t.Op {
	case "<":
		met = value < t.Limit
	case "<=":
		met = value <= t.Limit
	case ">":
		met = value > t.Limit
	case ">=":
		met = value >= t.Limit
	}
	return t.text(value), met
}

func (t Threshold) measure(h *history.History, holds []Held) (value int64, measured bool) {
	if t.Metric == freeWhileWaited {
		return int64(LongestFree(h, holds).Length()), true
	}
	op, what, _ := strings.Cut(t.Metric, ".")
	for _, l := range Latencies(h) {
		if l.Op == op {
			return map[string]int64{"p50": int64(l.P50), "p90": int64(l.P90), "p99": int64(l.P99), "max": int64(l.Max),
				"count": int64(l.N)}[what], true
		}
	}
	return 0, t.counts()
}
