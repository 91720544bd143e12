package main

import (
	"bufio"
	"bytes"
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
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// pollEvery is how often a file that has been read to its end is looked at again.
const pollEvery = 100 * time.Millisecond

// maxHead is how much of a stream is read before its format is known, at most.
const maxHead = 64 << 10

// checkStream judges a history as it comes.
func checkStream(s streams, path string, o checkOptions, how history.Reading, options checker.Options) error {
	if err := streamable(o); err != nil {
		return usage(err)
	}
	in, err := openInput(s, path)
	if err != nil {
		return err
	}
	defer in.Close()
	if how.Clients == 0 {
		how.Clients = in.clients
	}
	how.Seen = &in.events
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	judging := checker.NewStream(options, how.Clients)
	shown := work(s, in.progress)
	defer shown.end()
	tell := func() {
		for _, v := range judging.Look() {
			shown.say(func() { s.note("VIOLATED, events %v: %s", v.Events, v.Text) })
		}
	}
	waits := sync.OnceFunc(func() {
		shown.say(func() { s.note("read to the end; waiting for more (Ctrl-C ends, and judges what has come)") })
	})
	r := &following{ctx: ctx, r: &counting{in.pipe, &in.done}, more: growing(path, o.follow), idle: func() {
		tell()
		waits()
	}}
	head, err := detectHead(r, &how)
	if err != nil {
		return badPath(fmt.Errorf("reading %s: %w", in.name, err))
	}
	next := time.Now().Add(time.Second)
	whole := io.MultiReader(bytes.NewReader(head), r)
	source, err := history.Each(whole, in.name, how, func(e *history.Event, line int) error {
		if err := judging.Add(e, line); err != nil {
			return err
		}
		if now := time.Now(); in.events.Load()%256 == 0 && now.After(next) {
			next = now.Add(time.Second)
			tell()
		}
		return nil
	})
	shown.end()
	if err != nil {
		return badPath(err)
	}
	if o.explain {
		explain(s, how, source)
	}
	judging.Name(source.Named)
	j := judged{Judgement: downgrade(path, judging.Judgement()), Format: source.Format, Assumed: how.Assume}
	j.Problems = append(j.Problems, source.Problems...)
	return endStream(s, j, o.json)
}

func endStream(s streams, j judged, asJSON bool) error {
	if asJSON {
		if err := s.json(j); err != nil {
			return err
		}
		return verdictCode(j.Verdict)
	}
	out := streams{out: harmlessWriter{s.out}}
	printJudgement(out, j)
	fmt.Fprintf(out.out, "judged as a stream; not judged: %s (chaos check without --stream judges them)\n",
		strings.Join(notStreamed(), ", "))
	return verdictCode(j.Verdict)
}

// notStreamed is the properties that a stream cannot judge.
func notStreamed() (names []string) {
	for _, row := range checker.Catalog() {
		if !slices.Contains(checker.Streamed(), row.Name) {
			names = append(names, string(row.Name))
		}
	}
	return names
}

// streamable refuses what can only be done with the whole history.
func streamable(o checkOptions) error {
	for _, name := range o.properties {
		if slices.Contains(notStreamed(), name) {
			return fmt.Errorf("--stream cannot judge %s, for which the whole history is needed; it judges %s", name,
				strings.Join(propertyList(checker.Streamed()), ", "))
		}
	}
	if o.format == string(history.FormatText) {
		return errors.New("--stream cannot read the notation, whose lines may be in any order")
	}
	return nil
}

func propertyList(ps []checker.Property) (names []string) {
	for _, p := range ps {
		names = append(names, string(p))
	}
	return names
}

// growing says whether more may come after the end of what is read: as long as
// the run goes on whose directory it is, or until somebody interrupts.
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

// following reads a file that grows: at its end it waits for more.
type following struct {
	ctx  context.Context
	r    io.Reader
	more func() bool
	idle func() // called whenever it waits
	last bool   // nothing will be added any more
}

// Read reads, and waits if there is nothing yet.
func (f *following) Read(b []byte) (int, error) {
	for {
		n, err := f.r.Read(b)
		if n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		if f.last || f.ctx.Err() != nil {
			return 0, io.EOF
		}
		f.last = !f.more() // what was written before the run ended is still to be read
		if f.last {
			continue
		}
		f.idle()
		select {
		case <-f.ctx.Done():
		case <-time.After(pollEvery):
		}
	}
}

// detectHead reads as many lines as it takes to know the format, so that a
// stream of which little has come yet is judged at once. It returns what it read.
func detectHead(r io.Reader, how *history.Reading) ([]byte, error) {
	var head []byte
	buf := make([]byte, 4096)
	for how.Format == "" || how.Format == history.FormatAuto {
		n, err := r.Read(buf)
		head = append(head, buf[:n]...)
		if err != nil && !errors.Is(err, io.EOF) {
			return head, err
		}
		enough := errors.Is(err, io.EOF) || len(head) >= maxHead
		if !enough && bytes.IndexByte(head, '\n') < 0 {
			continue
		}
		format, _, unknown := history.Detect(bufio.NewReaderSize(bytes.NewReader(head), maxHead))
		if unknown != nil && !enough {
			continue
		}
		if unknown != nil {
			return head, unknown
		}
		if format == history.FormatText {
			return head, fmt.Errorf("%w as a stream: it is in the notation, whose lines may be in any order",
				history.ErrNotHistory)
		}
		how.Format = format
		if format == history.FormatJSONL && how.Foreign() {
			how.Format = history.FormatJSON
		}
	}
	return head, nil
}
