package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/internal/serve"
	"github.com/lockchaos/lockchaos/reports/page"
)

// Bounds of a request; the pages are small and the browser is on this machine.
const (
	serveTimeout = 30 * time.Second
	serveGrace   = time.Second
)

func newServe(s streams) *cobra.Command {
	var addr string
	c := &cobra.Command{
		Use:   "serve DIR",
		Short: "Show runs, suites and nightly results in a browser",
		Long: `Serves the files below DIR on loopback until it is interrupted: a list of runs (chaos run --out DIR)
with their verdicts, the page of a suite (chaos suite --out DIR), of nights (chaos index DIR), and
the reports that they link to. The page of a suite that is running shows its rows so far and
refreshes itself. Nothing outside of DIR is served, and nothing is changed.`,
		Example: `  chaos serve chaos-runs
  chaos serve nights --addr 127.0.0.1:8080
  ssh -L 8080:127.0.0.1:8080 ci.example chaos serve nights --addr 127.0.0.1:8080`,
		Args: oneArg("a directory"),
		RunE: func(c *cobra.Command, args []string) error { return serveDir(c.Context(), s, args[0], addr) },
	}
	c.Flags().StringVar(&addr, "addr", "127.0.0.1:0", "loopback `HOST:PORT` to listen on; port 0: any free one, printed")
	return c
}

func serveDir(ctx context.Context, s streams, dir, addr string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return badPath(err)
	}
	defer root.Close()
	listener, err := serve.Listen(addr)
	if errors.Is(err, serve.ErrNotLoopback) {
		return usage(fmt.Errorf("--addr %w", err))
	}
	if err != nil {
		return &codeError{exitEnvironment, err}
	}
	scripts, err := page.Scripts()
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: serve.Handler(root, scripts...), ReadHeaderTimeout: serveTimeout, WriteTimeout: serveTimeout,
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), serveGrace)
		defer cancel()
		_ = server.Shutdown(end)
	})
	fmt.Fprintf(s.out, "http://%s/\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
