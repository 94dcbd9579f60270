package scale_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/test/cluster"
)

// BenchmarkScale compares a preflight of N checks with kubectl create and
// kubectl wait of the same Jobs. They run alternately, under the same conditions.
// The ratio is the median of the pairs; less than 1 is faster than kubectl.
//
// The Job controller has the default rate of Kubernetes, or that of OpenShift. It makes
// seven requests for each Job, so its rate limits kubectl; a preflight requires only the
// first of them.
func BenchmarkScale(b *testing.B) {
	for _, bc := range []struct {
		name  string
		n     int
		pairs int
		// rate and burst are the Job controller's.
		rate, burst int
	}{
		{name: "rate=openshift/N=1000", n: 1000, pairs: 1, rate: openshiftRate, burst: openshiftBurst},
		{name: "rate=openshift/N=5000", n: 5000, pairs: 1, rate: openshiftRate, burst: openshiftBurst},
		{name: "rate=kubernetes/N=1000", n: 1000, pairs: 1, rate: 20, burst: 30},
	} {
		b.Run(bc.name, func(b *testing.B) {
			e := start(b, cluster.ControllerRate(bc.rate, bc.burst))
			wanted := checks{count: bc.n, duration: "1s"}
			e.publish(wanted)
			file := e.file(wanted)
			var preflights, kubectls []measurement
			for b.Loop() {
				for range bc.pairs {
					preflights, kubectls = append(preflights, e.preflight(bc.n)), append(kubectls, e.kubectl(file, bc.n))
				}
			}
			logMedians(b, bc.n, preflights, kubectls)
		})
	}
}

// logMedians reports the medians of runs of n Jobs, and prints the phases of the median
// runs.
func logMedians(b *testing.B, n int, preflights, kubectls []measurement) {
	b.Helper()
	var ratios, late []float64
	peak := 0.0
	for i := range preflights {
		ratios = append(ratios, preflights[i].verdict.Seconds()/kubectls[i].verdict.Seconds())
		late, peak = append(late, preflights[i].late.Seconds()), max(peak, preflights[i].peak)
	}
	preflight, kubectl := median(preflights), median(kubectls)
	slices.Sort(ratios)
	slices.Sort(late)
	b.ReportMetric(ratios[len(ratios)/2], "verdict/kubectl")
	b.ReportMetric(preflight.verdict.Seconds(), "s-verdict")
	b.ReportMetric(kubectl.verdict.Seconds(), "s-kubectl")
	b.ReportMetric(late[len(late)/2], "s-after-last-container")
	b.ReportMetric((preflight.until.total()+preflight.after.total())/float64(n), "requests/Job")
	b.ReportMetric(peak, "MiB-peak")
	// testing.B truncates its log after ten lines.
	fmt.Fprintf(os.Stderr, "\n%s\n%s\n", preflight.table("oc preflight run", n), kubectl.table("kubectl create, kubectl wait", n))
}

// median returns the run with the median time to the verdict.
func median(runs []measurement) measurement {
	slices.SortFunc(runs, func(a, b measurement) int { return int(a.verdict - b.verdict) })
	return runs[len(runs)/2]
}

// table prints the phases, CPU times and requests of a run of n Jobs.
func (m measurement) table(name string, n int) string {
	var page strings.Builder
	fmt.Fprintf(&page, "%s, %d Jobs: %s, %s after the end of the last container\n", name, n, seconds(m.verdict), seconds(m.late))
	fmt.Fprintf(&page, "  %-36s %9s %9s %9s %9s %9s\n", "component", "median", "longest", "first at", "last at", "Jobs/s")
	for _, phase := range m.phases {
		rate := "-"
		if spread := phase.last - phase.first; spread > 0 {
			rate = fmt.Sprintf("%.0f", float64(phase.count)/spread.Seconds())
		}
		fmt.Fprintf(&page, "  %-36s %9s %9s %9s %9s %9s", phase.component, seconds(phase.median), seconds(phase.longest), seconds(phase.first),
			seconds(phase.last), rate)
		if phase.count < n {
			fmt.Fprintf(&page, "  (of %d, at the verdict)", phase.count)
		}
		page.WriteString("\n")
	}
	fmt.Fprintf(&page, "  CPU time: program %s", seconds(m.programCPU))
	for _, component := range slices.Sorted(maps.Keys(m.clusterCPU)) {
		fmt.Fprintf(&page, ", %s %s", component, seconds(m.clusterCPU[component]))
	}
	fmt.Fprintf(&page, "; peak memory %.0f MiB\n", m.peak)
	fmt.Fprintf(&page, "  requests of the program per Job: %s\n", m.until.byVerb(n))
	if len(m.after.byUser) > 0 {
		fmt.Fprintf(&page, "  and afterwards, for the cleanup, in %s: %s\n", seconds(m.all-m.verdict), m.after.byVerb(n))
	}
	fmt.Fprintf(&page, "  of all clients per Job: %s\n", m.until.topRequests(n))
	return page.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }
