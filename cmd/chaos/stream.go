package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/console"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/tail"
)

// maxHead is how much of a stream is read at most to detect its format.
const maxHead = 64 << 10

// checkStream judges a history while it is written, until an interrupt.
func checkStream(s streams, path string, o checkOptions) error {
	if err := streamable(o); err != nil {
		return usage(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	j, _, err := judgeStream(ctx, s, path, o)
	if err != nil {
		return err
	}
	err = printJudged(s, j, o.json)
	if !o.json {
		fmt.Fprintf(s.out, "judged as a stream, without %s (chaos check without --stream judges them)\n",
			strings.Join(notStreamed(), ", "))
	}
	return err
}

// judgeStream judges a history as a stream, and says why the whole check may have another verdict; "": it has not.
// With --stream it prints each violation as soon as it is certain.
func judgeStream(ctx context.Context, s streams, path string, o checkOptions) (j judged, unsure string, err error) {
	reading, options, err := o.of(manifestOf(path))
	if err != nil {
		return j, "", err
	}
	in, err := openInput(s, path)
	if err != nil {
		return j, "", err
	}
	defer in.Close()
	reading.Clients, reading.Progress = cmp.Or(reading.Clients, in.clients), &in.events
	judging := checker.NewStream(options, reading.Clients)
	line := console.ShowStatus(s.err, in.status)
	defer line.End()
	printViolations := func() {
		for _, v := range judging.Look() {
			s.note("VIOLATED, events %v: %s", v.Events, format.Line(v.Text))
		}
	}
	noteWaiting := sync.OnceFunc(func() {
		s.note("end of file; waiting for more (Ctrl-C stops and judges what was read)")
	})
	r := &tail.Reader{Context: ctx, File: &counting{in.pipe, &in.done}, More: growing(path, o.follow), Idle: func() {
		printViolations()
		noteWaiting()
	}}
	head, err := detectHead(r, &reading)
	if err != nil {
		return j, "", badPath(fmt.Errorf("reading %s: %w", in.name, err))
	}
	next := time.Now().Add(time.Second)
	all := io.MultiReader(bytes.NewReader(head), r)
	source, err := foreign.ReadEvents(all, in.name, reading, func(e *history.Event, number int) error {
		if err := judging.Add(e, number); err != nil {
			return err
		}
		if now := time.Now(); o.stream && in.events.Load()%256 == 0 && now.After(next) {
			next = now.Add(time.Second)
			printViolations()
		}
		return nil
	})
	line.End()
	if err != nil {
		return j, "", badPath(err)
	}
	judging.SetProcessNames(source.ProcessNames)
	j = judged{Judgement: judging.Judgement(), Format: source.Format, Assumed: reading.Assume, Stream: true}
	unsure = judging.Unsure(j.Judgement)
	if len(source.Affected)+len(reading.Assume) > 0 || source.Keys.Path != "" || reading.Owner != "" {
		unsure = "a stream does not find other readings and owners"
	}
	if o.explain && (o.stream || unsure == "") {
		explain(s, reading, source)
	}
	j.Judgement = manifestOf(path).Downgrade(j.Judgement)
	j.Problems = append(j.Problems, source.Problems...)
	return j, unsure, nil
}

func streamedNames() []string {
	return format.Texts(checker.Streamed(), func(p checker.Property) checker.Property { return p })
}

// notStreamed are the properties that need the whole history.
func notStreamed() []string {
	return slices.DeleteFunc(propertyNames(), func(name string) bool { return slices.Contains(streamedNames(), name) })
}

// streamable refuses options that need the whole history.
func streamable(o checkOptions) error {
	for _, name := range o.properties {
		if slices.Contains(notStreamed(), name) {
			return fmt.Errorf("--stream cannot judge %s, which needs the whole history; it can judge %s", name,
				strings.Join(streamedNames(), ", "))
		}
	}
	if o.format == string(foreign.FormatText) {
		return errors.New("--stream cannot read format text: its lines may be in any order")
	}
	return nil
}

// growing returns whether the history may still grow: while the run of the
// directory at path is in progress, or with --follow until an interrupt.
func growing(path string, follow bool) func() bool {
	dir, err := rundir.Open(path)
	if err != nil {
		return func() bool { return follow }
	}
	return func() bool {
		m, err := dir.ReadManifest()
		return err == nil && m.State == rundir.Running
	}
}

// detectHead reads only as many lines as it needs to detect the format, so that
// a slow stream is judged from its first events. It returns the events that it read.
func detectHead(r io.Reader, reading *foreign.Options) ([]byte, error) {
	var head []byte
	buf := make([]byte, 4096)
	for reading.Format == "" || reading.Format == foreign.FormatAuto {
		n, err := r.Read(buf)
		head = append(head, buf[:n]...)
		if err != nil && !errors.Is(err, io.EOF) {
			return head, err
		}
		enough := errors.Is(err, io.EOF) || len(head) >= maxHead
		if !enough && bytes.IndexByte(head, '\n') < 0 {
			continue
		}
		format, _, unknown := foreign.Detect(bufio.NewReaderSize(bytes.NewReader(head), maxHead))
		if unknown != nil && !enough {
			continue
		}
		if unknown != nil {
			return head, unknown
		}
		if format == foreign.FormatText {
			return head, fmt.Errorf("%w for --stream: lines of format text may be in any order", foreign.ErrNotHistory)
		}
		reading.Format = format
		if format == foreign.FormatJSONL && reading.Foreign() {
			reading.Format = foreign.FormatJSON
		}
	}
	return head, nil
}
