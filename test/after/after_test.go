package after_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/test/after"
)

// problems are entries as "Deployment shop/web Unavailable".
func problems(entries []afterupdate.Regression) []string {
	var all []string
	for _, each := range entries {
		all = append(all, problem(each.Object, each.Is))
		for _, follows := range each.Follows {
			all = append(all, problem(follows.Object, follows.Is))
		}
	}
	return all
}

func problem(of finding.Object, is string) string {
	reason, _, _ := strings.Cut(is, ":")
	return of.Kind + " " + strings.TrimPrefix(of.Namespace+"/"+of.Name, "/") + " " + reason
}

// judge judges an update after which these changes were made.
func judge(t *testing.T, changes ...after.Case) afterupdate.Report {
	t.Helper()
	world := after.New(after.Noon())
	before := world.Baseline(t)
	world.Update()
	for _, each := range changes {
		each.Apply(world)
	}
	return world.Judge(t, before)
}

// An update that harms nothing is good.
func TestGood(t *testing.T) {
	if made := judge(t); made.Decision != afterupdate.Good {
		t.Errorf("%s: %s: %+v %+v", made.Decision, made.Message, made.Regressions, made.Pending)
	}
}

// Every regression is named by its object, and nothing else is.
func TestRegressions(t *testing.T) {
	for _, tc := range after.Regressions() {
		t.Run(tc.Name, func(t *testing.T) {
			made := judge(t, tc)
			got := problems(made.Regressions)
			if made.Decision != afterupdate.Regressed {
				t.Errorf("%s: %s (%s), pending %q", tc.Reason, made.Decision, made.Message, problems(made.Pending))
			}
			for _, want := range tc.Worse {
				if !slices.Contains(got, want) {
					t.Errorf("%s: %q is not among %q, pending %q, excused %q", tc.Reason, want, got, problems(made.Pending), problems(made.Excused))
				}
			}
			for _, each := range got {
				if !slices.Contains(tc.Worse, each) && !slices.Contains(tc.Also, each) {
					t.Errorf("%s: %q is named", tc.Reason, each)
				}
			}
		})
	}
}

// No change that looks like a regression is one.
func TestInnocents(t *testing.T) {
	for _, tc := range after.Innocents() {
		t.Run(tc.Name, func(t *testing.T) {
			if made := judge(t, tc); made.Decision != afterupdate.Good {
				t.Errorf("%s: %s (%s), regressions %q, pending %q", tc.Reason, made.Decision, made.Message, problems(made.Regressions),
					problems(made.Pending))
			}
		})
	}
}

// What was bad before the update is not worse after it.
func TestBadBefore(t *testing.T) {
	for _, tc := range after.BadBefore() {
		t.Run(tc.Name, func(t *testing.T) {
			world := after.New(after.Noon())
			earlier := world.Clone()
			tc.Apply(earlier)
			before := earlier.Baseline(t)
			world.Update()
			tc.Apply(world)
			if made := world.Judge(t, before); made.Decision != afterupdate.Good || len(made.Unchanged) == 0 {
				t.Errorf("%s: %s (%s), regressions %q, unchanged %q", tc.Reason, made.Decision, made.Message, problems(made.Regressions),
					problems(made.Unchanged))
			}
		})
	}
}

// updates is the number of random updates, each of a mixture of regressions and innocent changes of other objects.
const updates = 100

func TestRandomUpdates(t *testing.T) {
	before := after.New(after.Noon()).Baseline(t)
	var injected, found, wrong, judged int
	for seed := range uint64(updates) {
		chosen := mixture(rand.New(rand.NewPCG(seed, 1))) // the seed makes it repeatable
		world := after.New(after.Noon())
		world.Update()
		want, allowed := []string{}, []string{}
		for _, each := range chosen {
			each.Apply(world)
			want = append(want, each.Worse...)
			allowed = append(allowed, slices.Concat(each.Worse, each.Also)...)
		}
		made := world.Judge(t, before)
		got := problems(made.Regressions)
		judged++
		injected += len(want)
		for _, each := range want {
			if slices.Contains(got, each) {
				found++
			} else {
				t.Errorf("seed %d: %q is missed among %q", seed, each, got)
			}
		}
		for _, each := range got {
			if !slices.Contains(allowed, each) {
				wrong++
				t.Errorf("seed %d: %q is wrong", seed, each)
			}
		}
		if len(want) == 0 && made.Decision == afterupdate.Regressed || len(want) > 0 && made.Decision != afterupdate.Regressed {
			t.Errorf("seed %d: %s (%s) with %q", seed, made.Decision, made.Message, want)
		}
	}
	t.Logf("%d updates: %d of %d injected problems found, %d wrong", judged, found, injected, wrong)
}

// mixture is up to three regressions and up to four innocent changes, of different objects.
func mixture(random *rand.Rand) []after.Case {
	var chosen []after.Case
	touched := map[after.Ref]bool{}
	add := func(from []after.Case, most int) {
		for range random.IntN(most + 1) {
			candidate := from[random.IntN(len(from))]
			refs := after.Touched(candidate)
			if slices.ContainsFunc(refs, func(ref after.Ref) bool { return touched[ref] }) {
				continue
			}
			for _, ref := range refs {
				touched[ref] = true
			}
			chosen = append(chosen, candidate)
		}
	}
	add(after.Regressions(), 3)
	add(after.Innocents(), 4)
	return chosen
}
