// Package program answers: which version is this program, how often does it collect
// garbage, and where do its libraries log?
package program

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"

	"k8s.io/klog/v2"
)

// version, unless empty, was set by the linker
// (go build -ldflags "-X PACKAGE.version=v2.0.0"). Nothing assigns it.
var version string

// Version is the version of the module that the program was built from.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// CollectGarbage sets the growth of the heap, in percent, after which garbage is collected. Where
// the environment has GOGC, that decides.
func CollectGarbage(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// LogTo sends the log of client-go, which uses klog, to a logger. klog has one logger and one verbosity for
// the whole process: if the program is executed several times, the flags of the last execution apply.
func LogTo(logger *slog.Logger, verbosity int) {
	libraries().present.Store(logger)
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("v", strconv.Itoa(verbosity)) // a number always parses
}

// libraries is the handler of klog. It is set once, since klog may be logging when it is replaced.
var libraries = sync.OnceValue(func() *forwarder { //nolint:gochecknoglobals // klog has one for the process
	f := &forwarder{}
	f.present.Store(slog.New(slog.DiscardHandler))
	klog.SetSlogLogger(slog.New(f))
	return f
})

// forwarder is a handler that forwards to the handler of the present logger. A handler with attributes stays with the logger
// that was present when it was made.
type forwarder struct{ present atomic.Pointer[slog.Logger] }

// Enabled implements slog.Handler.
func (f *forwarder) Enabled(ctx context.Context, level slog.Level) bool {
	return f.present.Load().Handler().Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (f *forwarder) Handle(ctx context.Context, record slog.Record) error {
	return f.present.Load().Handler().Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (f *forwarder) WithAttrs(attributes []slog.Attr) slog.Handler {
	return f.present.Load().Handler().WithAttrs(attributes)
}

// WithGroup implements slog.Handler.
func (f *forwarder) WithGroup(name string) slog.Handler {
	return f.present.Load().Handler().WithGroup(name)
}
