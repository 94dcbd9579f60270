package phrase_test

import (
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/collector/finding"
)

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
		"Targets": {reason: "a list of targets needs less than a run", verb: "targets", target: "--to 4.19.3", action: finding.Roles(), want: "oc preflight auth targets --bind user:alice"},
		"Run":     {reason: "a run grants the permissions of the checks of its release", verb: "run", target: "--to 4.19.3", action: finding.Roles(), want: "oc preflight auth run --to 4.19.3 --bind user:alice"},
		"Path":    {reason: "the roles are for one release at most", verb: "run", target: "--hop 4.18.9 4.19.3", action: finding.Roles(), want: "oc preflight auth run --bind user:alice"},
		"Images":  {reason: "to pull images needs more", verb: "run", target: "--to-latest", flags: []string{"--images", "pull"}, action: finding.Roles(), want: "oc preflight auth run --to-latest --images pull --bind user:alice"},
		"Hosted":  {reason: "the roles of both clusters", verb: "targets", flags: []string{"--hosted-cluster", "clusters/one"}, action: finding.Roles(), want: "oc preflight auth targets --hosted-cluster clusters/one --bind user:alice"},
		"Attach":  {reason: "to continue a run needs the same as to start it", verb: "attach", action: finding.Roles(), want: "oc preflight auth run --bind user:alice"},
		"Other":   {reason: "the finding knows the user", verb: "targets", action: finding.RolesOf("system:serviceaccount:ci:reader"), want: "oc preflight auth targets --bind serviceaccount:ci:reader"},
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
