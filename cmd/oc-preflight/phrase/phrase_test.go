package phrase_test

import (
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/roster"
)

// A request that is to be made again with a value that only the user knows is no command, but a sentence of the
// remedy, for one cluster and for a fleet.
func TestUnknownValues(t *testing.T) {
	for option, want := range map[string]string{
		finding.OptionMonitoring: "--prometheus URL", finding.OptionTrust: "--keyring FILE", finding.OptionRepository: "--repository REPOSITORY",
		finding.OptionFixTime: "--since TIME", finding.OptionGraph: "--channel CHANNEL",
	} {
		f := finding.Warn(finding.ReportedReason("NoMonitoring"), "no").Remedy("Fix it.").Do(finding.Retry(option))
		got := called(t, "run").Findings([]finding.Finding{f})[0]
		if got.Actions[0].Command != "" || !strings.HasPrefix(got.Remediation, "Fix it. ") || !strings.Contains(got.Remediation, want) {
			t.Errorf("%s: %q, %q; want a sentence with %s, and no command", option, got.Remediation, got.Actions[0].Command, want)
		}
		request := &cobra.Command{Use: "targets"}
		row := fleet.Row{Causes: []fleet.Cause{{Name: "Alerts", Remediation: "Fix it.", Actions: []finding.Action{finding.Retry(option)}}}}
		cause := phrase.OfFleet(request, "4.19.3").Row(roster.Member{}, row).Causes[0]
		if len(cause.Actions) > 0 || !strings.Contains(cause.Remediation, want) {
			t.Errorf("%s of a fleet: %q, %v; want a sentence with %s, and no command", option, cause.Remediation, cause.Actions, want)
		}
	}
	for _, option := range []string{"", finding.OptionTimeout, finding.OptionParallelism, finding.OptionImages} {
		f := finding.Warn(finding.ReportedReason("Timeout"), "no").Do(finding.Retry(option))
		if got := called(t, "run").Findings([]finding.Finding{f})[0].Actions[0].Command; !strings.HasPrefix(got, "oc preflight run") {
			t.Errorf("%q: %q, want the request again", option, got)
		}
	}
}

// A finding about several targets has commands about the newest of them, and a text about each.
func TestSeveralTargets(t *testing.T) {
	judged := report.Targets{
		Targets: []report.Candidate{{Version: "4.19.10"}, {Version: "4.19.9"}, {Version: "4.18.3"}},
		Findings: []report.TargetFinding{{
			Finding: finding.Fail(finding.ReportedReason("Applies"), "%s may do harm. %[1]s is not the release, but it may be to go to %[1]s.",
				report.AnyTarget).
				Do(finding.Accept("Risk"), finding.Read("oc adm release info %s", report.AnyTarget)),
			Targets: []string{"4.19.9", "4.18.3"},
		}},
	}
	got := called(t, "targets").WithTargetCommands(judged)
	f := got.Findings[0]
	if want := "The target may do harm. The target is not the release, but it may be to go to the target."; f.Message != want {
		t.Errorf("%q, want %q", f.Message, want)
	}
	for i, want := range []string{"oc preflight run --to 4.19.9 --accept Risk", "oc adm release info 4.19.9"} {
		if f.Actions[i].Command != want {
			t.Errorf("%q, want %q", f.Actions[i].Command, want)
		}
	}
}

// The list of targets leads to another command, or to none.
func TestNext(t *testing.T) {
	blocked := report.Candidate{Version: "4.19.3", Verdict: verdict.Verdict{Decision: verdict.Blocked}}
	for name, tc := range map[string]struct {
		reason  string
		flags   []string
		targets []report.Candidate
		want    string
	}{
		"List": {
			reason: "the findings of the newest", targets: []report.Candidate{blocked, {Version: "4.18.3", Verdict: blocked.Verdict}},
			want: "oc preflight targets --to 4.19.3",
		},
		"Same": {reason: "the target is shown already", flags: []string{"--to", "4.19.3"}, targets: []report.Candidate{blocked}},
		"Others": {
			reason: "how it is shown is no other request", flags: []string{"--output", "json", "--to", "4.19.3"},
			targets: []report.Candidate{blocked},
		},
		"None": {reason: "no version is known"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if next := called(t, "targets", tc.flags...).WithTargetCommands(report.Targets{Targets: tc.targets}).Actions; len(next) > 0 {
				got = next[0].Command
			}
			if got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// called is a command that was called with flags by the user alice, and the phrase of its request.
func called(t *testing.T, verb string, flags ...string) phrase.Phrase {
	t.Helper()
	root := &cobra.Command{Use: "preflight", Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "oc preflight"}}
	root.PersistentFlags().String("context", "", "")
	root.PersistentFlags().String("token", "", "")
	root.PersistentFlags().String("kubeconfig", "", "")
	var verbs []*cobra.Command
	for _, name := range []string{"run", "targets", "attach"} {
		each := &cobra.Command{Use: name}
		each.Flags().String("hosted-cluster", "", "")
		each.Flags().String("images", "", "")
		each.Flags().String("to", "", "")
		each.Flags().String("output", "", "")
		each.SetContext(phrase.WithRequester(t.Context(), func(context.Context) cli.Requester { return cli.Requester{User: "alice"} }))
		verbs = append(verbs, each)
	}
	root.AddCommand(verbs...)
	for _, each := range verbs {
		if each.Name() == verb {
			if err := each.ParseFlags(flags); err != nil {
				t.Fatal(err)
			}
			return phrase.Of(each)
		}
	}
	t.Fatalf("no verb %s", verb)
	return phrase.Phrase{}
}

// A finding about a missing permission has the roles for the command that lacks it, bound to its user, for an
// administrator: with none of the flags by which the user reaches the cluster.
func TestRolesOfAFinding(t *testing.T) {
	connection := []string{"--context", "mine", "--kubeconfig", "mine", "--token", "secret"}
	for name, tc := range map[string]struct {
		reason, verb, target string
		flags                []string
		action               finding.Action
		want                 string
	}{
		"Targets": {
			reason: "a list of targets needs less than a run", verb: "targets", target: "--to 4.19.3", action: finding.Roles(),
			want: "oc preflight auth targets --bind user:alice",
		},
		"Run": {
			reason: "a run grants the permissions of the checks of its release", verb: "run", target: "--to 4.19.3",
			action: finding.Roles(), want: "oc preflight auth run --to 4.19.3 --bind user:alice",
		},
		"Path": {
			reason: "the roles are for one release at most", verb: "run", target: "--hop 4.18.9 4.19.3", action: finding.Roles(),
			want: "oc preflight auth run --bind user:alice",
		},
		"Images": {
			reason: "to pull images needs more", verb: "run", target: "--to-latest", flags: []string{"--images", "pull"},
			action: finding.Roles(), want: "oc preflight auth run --to-latest --images pull --bind user:alice",
		},
		"Hosted": {
			reason: "the roles of both clusters", verb: "targets", flags: []string{"--hosted-cluster", "clusters/one"},
			action: finding.Roles(), want: "oc preflight auth targets --hosted-cluster clusters/one --bind user:alice",
		},
		"Attach": {
			reason: "to continue a run needs the same as to start it", verb: "attach", action: finding.Roles(),
			want: "oc preflight auth run --bind user:alice",
		},
		"Other": {
			reason: "the finding knows the user", verb: "targets", action: finding.RolesOf("system:serviceaccount:ci:reader"),
			want: "oc preflight auth targets --bind serviceaccount:ci:reader",
		},
	} {
		t.Run(name, func(t *testing.T) {
			request := called(t, tc.verb, append(tc.flags, connection...)...)
			request.Target = phrase.FlagsOf(strings.Fields(tc.target)...)
			refused := finding.Warn(finding.ReportedReason("Forbidden"), "no").Do(tc.action)
			if got := request.Findings([]finding.Finding{refused})[0].Actions[0].Command; got != tc.want {
				t.Errorf("%s: %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}
