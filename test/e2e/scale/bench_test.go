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
// kubectl wait of the same Jobs, in turn, so that both meet the same machine.
// The ratio is the median of the pairs; less than 1 is faster than kubectl.
//
// It does so at the rate that Kubernetes lets its Job controller have unless
// configured otherwise, and at that of OpenShift. The Job controller makes seven
// requests for each Job, so its rate bounds how soon kubectl can be done; a
// preflight needs only the first of them to have happened.
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
			p := start(b, cluster.ControllerRate(bc.rate, bc.burst))
			wanted := checks{count: bc.n, takes: "1s"}
			p.publish(wanted)
			file := p.file(wanted)
			var ours, theirs []ran
			for b.Loop() {
				for range bc.pairs {
					ours, theirs = append(ours, p.preflight(bc.n)), append(theirs, p.kubectl(file, bc.n))
				}
			}
			logMedians(b, size{n: bc.n, rate: bc.rate}, ours, theirs)
		})
	}
}

// size is how many Jobs there are, and how many requests their controller may
// make a second.
type size struct{ n, rate int }

// logMedians reports the medians, and logs where the time of the median run went.
func logMedians(b *testing.B, s size, ours, theirs []ran) {
	b.Helper()
	var ratios, late []float64
	peak := 0.0
	for i := range ours {
		ratios = append(ratios, ours[i].verdict.Seconds()/theirs[i].verdict.Seconds())
		late, peak = append(late, ours[i].late.Seconds()), max(peak, ours[i].peak)
	}
	us, them := middle(ours), middle(theirs)
	slices.Sort(ratios)
	slices.Sort(late)
	b.ReportMetric(ratios[len(ratios)/2], "verdict/kubectl")
	b.ReportMetric(us.verdict.Seconds(), "s-verdict")
	b.ReportMetric(them.verdict.Seconds(), "s-kubectl")
	b.ReportMetric(late[len(late)/2], "s-after-last-container")
	b.ReportMetric((us.until.total()+us.after.total())/float64(s.n), "requests/Job")
	b.ReportMetric(peak, "MiB-peak")
	// The log of a benchmark is cut off after ten lines.
	fmt.Fprintf(os.Stderr, "\n%s\n%s\n", us.table("oc preflight run", s), them.table("kubectl create, kubectl wait", s))
}

// middle is the run that was neither fast nor slow.
func middle(runs []ran) ran {
	slices.SortFunc(runs, func(a, b ran) int { return int(a.verdict - b.verdict) })
	return runs[len(runs)/2]
}

// table says who took the time.
func (r ran) table(name string, s size) string {
	n := s.n
	var page strings.Builder
	fmt.Fprintf(&page, "%s, %d Jobs: %s, %s after the end of the last container\n", name, n, seconds(r.verdict), seconds(r.late))
	fmt.Fprintf(&page, "  %-36s %9s %9s %9s %9s %9s\n", "who", "median", "longest", "first at", "last at", "Jobs/s")
	for _, phase := range r.phases {
		rate := "-"
		if spread := phase.last - phase.first; spread > 0 {
			rate = fmt.Sprintf("%.0f", float64(phase.count)/spread.Seconds())
		}
		fmt.Fprintf(&page, "  %-36s %9s %9s %9s %9s %9s", phase.who, seconds(phase.each), seconds(phase.longest), seconds(phase.first), seconds(phase.last), rate)
		if phase.count < n {
			fmt.Fprintf(&page, "  (of %d, when it was over)", phase.count)
		}
		page.WriteString("\n")
	}
	fmt.Fprintf(&page, "  CPU time: the program %s", seconds(r.own))
	for _, who := range slices.Sorted(maps.Keys(r.work)) {
		fmt.Fprintf(&page, ", %s %s", who, seconds(r.work[who]))
	}
	fmt.Fprintf(&page, "; peak memory %.0f MiB\n", r.peak)
	fmt.Fprintf(&page, "  its requests for each Job: %s\n", r.until.byVerb(n))
	if len(r.after.asked) > 0 {
		fmt.Fprintf(&page, "  and afterwards, to clean up, in %s: %s\n", seconds(r.all-r.verdict), r.after.byVerb(n))
	}
	fmt.Fprintf(&page, "  of all clients for each Job: %s\n", r.until.everybodys(n))
	return page.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }
