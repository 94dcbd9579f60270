// Package program answers: which version is this program, how often does it collect
// garbage, and where do its libraries log?
package program

import (
	"flag"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"

	"k8s.io/klog/v2"
)

// version, unless empty, is that of a build which states it with the linker
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

// LogTo sends the log of client-go, which uses klog, to a logger. klog has one logger for
// the whole process.
func LogTo(logger *slog.Logger, verbosity int) {
	klog.SetSlogLogger(logger)
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("v", strconv.Itoa(verbosity)) // a number always parses
}
