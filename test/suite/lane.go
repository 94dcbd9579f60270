package suite

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Lane is one call of "go test". Lanes run at the same time.
type Lane struct {
	// Flags are those of "go test" besides -json, -p and -race.
	Flags []string
	// Packages are import paths, in the order in which they start.
	Packages []string
	// Processes is how many packages are tested at a time.
	Processes int
	// Race turns the race detector on.
	Race bool
	// Verbose also shows the output of tests that pass.
	Verbose bool
	// Next, if not nil, runs after this lane.
	Next *Lane
}

// partial reports whether only some tests of its packages run.
func (l Lane) partial() bool { return slices.Contains(l.Flags, "-run") }

// arguments are those of the Go tool, with the program that measures the tests, if not
// empty, and the file to which it adds what compilers and linkers use, if not empty. Vet is part of "make lint".
func (l Lane) arguments(measure, tools string) []string {
	arguments := []string{
		"test", "-json", "-vet=off", "-timeout", "75m", "-p", strconv.Itoa(l.Processes), "-parallel",
		strconv.Itoa(runtime.NumCPU()),
	}
	if l.Race {
		// Compression has no goroutines, and takes most of the time of the tests of
		// records where it is instrumented.
		arguments = append(arguments, "-race", "-gcflags=compress/...=-dwarf=false -race=false")
	}
	if measure != "" {
		arguments = append(arguments, "-exec", measure)
	}
	if tools != "" {
		arguments = append(arguments, "-toolexec", measure+" -tool "+tools)
	}
	return append(append(arguments, l.Flags...), l.Packages...)
}

// environment returns the variables of the Go tool that differ from those of
// this process. Tests lack processor time and not memory, so the tests and the programs
// that they start collect garbage less often. Each uses one processor at a time, since
// several run at the same time, and threads of one process then wake up each other less
// often; under the race detector it uses all. The race detector needs cgo.
func (l Lane) environment() []string {
	if l.Race {
		// By default a program under the race detector sleeps for a second at its end.
		return []string{"GOGC=400", "CGO_ENABLED=1", "GORACE=atexit_sleep_ms=50"}
	}
	return []string{"GOGC=400", "GOMAXPROCS=1"}
}

// slowest are the packages that take longest, those that take longest first. They start before the
// others, so that none of them runs alone at the end.
func slowest() []string {
	return []string{
		module + "/test/e2e",
		module + "/test/commands",
		module + "/test/e2e/faults",
		module + "/test/trigger",
		module + "/runner",
		module + "/test/cluster",
		module + "/runner/trigger/controller",
		module + "/test/installation",
		module + "/collector/gate",
		module + "/runner/record/lease",
		module + "/runner/payload",
		module + "/preflight-sdk",
		module + "/runner/rehearsal",
		module + "/test/drain",
		module + "/test/kills",
		module + "/runner/launch",
		module + "/collector/health",
		module + "/test/suite",
		module + "/cmd/oc-preflight/command",
	}
}

// releases are the oracles and the tests of what is released. They run before a release, and
// where what they depend on has changed. The value reports whether that is all of the product.
func releases() map[string]bool {
	return map[string]bool{
		module + "/test/deadlock":         false,
		module + "/test/foresee":          false,
		module + "/test/drain/release":    false,
		module + "/test/e2e/scale":        true,
		module + "/test/e2e/conformance":  true,
		module + "/test/hosted":           true,
		module + "/test/fleets":           true,
		module + "/test/e2e/faults/clock": true,
		module + "/test/distribution":     true,
		module + "/test/modules":          true,
		module + "/test/recipes":          true,
		module + "/test/newcomer":         true,
	}
}

// ofRelease reports whether the tests of a package are among releases.
func ofRelease(p Package) bool {
	_, ok := releases()[p.Path]
	return ok
}

// Unit returns the lanes with the tests that need no cluster. They run under the race
// detector where the package uses goroutines, but for clients of Kubernetes: see Race.
func Unit(all []Package) []Lane {
	raced := func(p Package) bool { return p.Concurrent && !p.Client }
	unit := func(p Package) bool { return !p.Cluster && !ofRelease(p) }
	return []Lane{
		{Packages: pick(all, func(p Package) bool { return unit(p) && raced(p) }), Processes: 2, Race: true},
		{Packages: pick(all, func(p Package) bool { return unit(p) && !raced(p) }), Processes: 2},
	}
}

// Cluster returns the lane with the tests that start clusters. Three packages at a time keep two
// processors busy; more of them take longer, since the processors then switch between more processes.
func Cluster(all []Package) []Lane {
	return []Lane{{Packages: pick(all, func(p Package) bool { return p.Cluster && !ofRelease(p) }), Processes: 3}}
}

// Race returns the lane with the tests under the race detector of packages that use goroutines and are
// clients of Kubernetes, with those that start clusters. In a new build cache, the compilation of their
// dependencies takes a sixth of the processor time of all tests of every promise.
func Race(all []Package) []Lane {
	raced := func(p Package) bool { return p.Concurrent && (p.Client || p.Cluster) && !ofRelease(p) }
	return []Lane{{Race: true, Processes: 2, Packages: pick(all, raced)}}
}

// Release returns the lane with the oracles and the tests of what is released.
func Release(all []Package) []Lane {
	return []Lane{{Processes: 2, Packages: pick(all, ofRelease)}}
}

// smokes are tests that together pass through the whole product, on real servers: those of these
// packages whose names match, in this order.
func smokes() []Lane {
	return []Lane{
		{Packages: []string{module + "/test/e2e"}, Flags: []string{"-run", "^TestDemo$"}, Processes: 1},
		{Packages: []string{module + "/test/e2e/faults"}, Flags: []string{"-run", "^TestFaults$/^killed_after_POST_jobs_2$"}, Processes: 1},
		{Packages: []string{module + "/test/drain"}, Flags: []string{"-run", "^TestClusters$"}, Processes: 1},
		{Packages: []string{module + "/test/commands"}, Flags: []string{"-run", "^TestFleet$"}, Processes: 1},
	}
}

// Smoke returns the lane with the smoke set: the demo, a killed run, the drains of ten clusters, and a fleet.
// Archives are judged without a cluster. Packages whose tests all run are left out.
func Smoke(others []Package) []Lane {
	var first *Lane
	for _, each := range slices.Backward(smokes()) {
		if slices.ContainsFunc(others, func(p Package) bool { return p.Path == each.Packages[0] }) {
			continue
		}
		each.Next = first
		first = &each
	}
	if first == nil {
		return nil
	}
	return []Lane{*first}
}

// Faults returns the lane with the faults of a run and of the controller, and with the kills of
// a run, which other lanes also run.
func Faults() Lane {
	return Lane{
		Flags:     []string{"-count=1", "-run", "^TestFaults$|^TestKilledAtAnyWrite$"},
		Packages:  []string{module + "/test/e2e/faults", module + "/test/trigger", module + "/test/kills"},
		Processes: 2, Verbose: true,
	}
}

// Attacks returns the lanes with the attacks, which other lanes also run: those that need
// no cluster first.
func Attacks() Lane {
	alone := Lane{Flags: []string{"-count=1", "-run", "^TestAttacks|^TestScripts$/^attacks$"}, Processes: 1, Verbose: true}
	for _, path := range []string{
		"signature", "signature/outbound", "runner/cache", "runner/registry/repository", "runner/registry/credential", "runner/jobs",
		"runner/audit", "runner/site",
		"runner/launch/credential", "runner/launch/jobplan", "runner/record/baselinestore", "collector/cluster", "collector/archive/redaction",
		"collector/document/reportview",
		"collector/document/junit", "runner/fleet", "runner/fleet/results", "runner/fleet/survey", "runner/fleet/tableview",
		"cmd/oc-preflight/command", "cmd/oc-preflight/support",
	} {
		alone.Packages = append(alone.Packages, module+"/"+path)
	}
	onCluster := alone
	onCluster.Packages = nil
	for _, path := range []string{
		"collector/rights", "runner/launch", "runner/record/lease", "runner/trigger/controller", "test/e2e",
		"test/commands",
	} {
		onCluster.Packages = append(onCluster.Packages, module+"/"+path)
	}
	alone.Next = &onCluster
	return alone
}

// pick returns the import paths of the packages that are wanted, the slowest
// first.
func pick(all []Package, wanted func(Package) bool) []string {
	var picked []string
	for _, p := range all {
		if wanted(p) {
			picked = append(picked, p.Path)
		}
	}
	order := slowest()
	rank := func(path string) int {
		if i := slices.Index(order, path); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(picked, func(a, b string) int {
		if byRank := rank(a) - rank(b); byRank != 0 {
			return byRank
		}
		return strings.Compare(a, b)
	})
	return picked
}
