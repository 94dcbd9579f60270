package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/decide"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/running"
	"github.com/openshift/update-preflight/cmd/oc-preflight/runs"
	"github.com/openshift/update-preflight/cmd/oc-preflight/support"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/health/draining"
	"github.com/openshift/update-preflight/collector/targets"
	"github.com/openshift/update-preflight/collector/updateplan/planner"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/conformance"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/image"
)

type authFlags struct {
	running.RunFlags

	bind            []string
	hostedCluster   string
	placement, keys string
	hive, hosted    bool
}

func newAuth(client *cli.Client) *cobra.Command {
	var flags authFlags
	c := &cobra.Command{
		Use:   "auth [COMMAND...]",
		Short: "Print the roles that the commands need",
		Long: `Print the ClusterRole and the Roles with exactly the permissions that a command needs; without COMMAND, those of every command. Nothing is created.

A run creates temporary read-only roles for the checks of a release, and the API server refuses to create a role with permissions that its creator does not have. With --to, --to-latest or --to-image the release is read with your own permissions, and the roles are for that release: they include the rules of its roles, and allow creation in its namespaces only. A run with --images=pull needs more permissions: pass the same --images here.`,
		Example: `  # For the users who run preflights of one release
  oc preflight auth run --to 4.19.3 --bind group:update-team | oc apply -f -

  # The same with checks of your own
  oc preflight auth run --to 4.19.3 --checks ./site-checks --bind group:update-team

  # For runs with --images=pull
  oc preflight auth run --images pull

  # For a hosted cluster: the roles of the management cluster, then those of the guest
  oc preflight auth run --hosted-cluster clusters/example

  # For the clusters of Hive: the roles in the cluster that has their ClusterDeployments
  oc preflight auth run --hive

  # For those who read what the clusters of a hub report
  oc preflight auth fleet-hub fleet-gate --placement fleets/production --bind group:update-team

  # For a ServiceAccount that only verifies
  oc preflight auth verify --bind serviceaccount:ci:verifier`,
		ValidArgs: commandNames(),
		RunE:      func(c *cobra.Command, args []string) error { return auth(c, client, flags, args) },
	}
	flags.Target.Add(c)
	flags.Trust.Add(c)
	flags.Pull.Add(c)
	flags.AddImages(c)
	flags.Site.Add(c)
	c.Flags().StringVar(&flags.hostedCluster, "hosted-cluster", "", "NAMESPACE/NAME of a HostedCluster: print the roles of its management cluster first, then those of the guest. Applies to "+hostedNames()+".")
	c.Flags().BoolVar(&flags.hive, "hive", false, "Print the roles of \"fleet COMMAND --hive\" in the cluster with the ClusterDeployments. Applies to "+strings.Join(ofFleet(), ", ")+".")
	c.Flags().BoolVar(&flags.hosted, "hosted", false, "Print the roles of \"fleet COMMAND --hosted\" in the management cluster. Applies to "+strings.Join(ofFleet(), ", ")+".")
	c.Flags().StringVar(&flags.placement, "placement", "", "NAMESPACE/NAME of a Placement of a hub: print the roles for it alone. Applies to "+strings.Join(hubCommands(), ", ")+".")
	c.Flags().StringVar(&flags.keys, "keys", "", "configmap://NAMESPACE/NAME of the public keys on a hub: add the permission to read it. Applies to "+fleetHub+" and "+fleetGate+".")
	c.Flags().StringArrayVar(&flags.bind, "bind", nil, "Bind the roles to user:NAME, group:NAME or serviceaccount:NAMESPACE:NAME.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay}, "bind")
	option.Declare(c.Flags(), option.Option{Group: option.Hosted, Effect: option.OnClusters, Again: option.Reaching}, "hosted-cluster")
	option.Declare(c.Flags(), option.Option{Group: option.Clusters, Effect: option.OnClusters}, "hive", "hosted")
	option.Declare(c.Flags(), option.Option{Group: option.Clusters, Effect: option.OnAnswer}, "placement", "keys")
	return c
}

type commandRole struct {
	command string
	// needs are computed only for roles that are printed: those of a run take a tenth of the start of the program.
	needs func() access.Needs
	// remarks are printed above the roles.
	remarks []string
	// suffix is of the names of the roles, so that they do not replace those of the cluster itself.
	suffix string
}

// jobsRunAs is the consequence of a role that an administrator must know before
// binding it.
const jobsRunAs = "A user who may create Jobs in a namespace can run them as any of its ServiceAccounts."

// createsSecrets is the consequence of the optional permission to create the key of records.
const createsSecrets = "A user who may create Secrets in the namespace openshift-cluster-version, and get the one with the key of the records, can get a token of any of its ServiceAccounts. After the first run, the role needs no permission to create Secrets." //nolint:gosec // no credentials

// copiesGrant is what a user needs in addition for checks with existing ServiceAccounts.
const copiesGrant = "A check with an existing ServiceAccount runs as a temporary copy with the read access of the original, which the user must have, too; for this, roles are created in any namespace."

// commandRoles are all commands that send requests to a cluster. images is the mode
// of "run".
func commandRoles(images image.Mode) []commandRole {
	const given = "The API server refuses to create a role with permissions that its creator does not have, so the rules of the roles in %s have to be added to these."
	return append([]commandRole{
		{command: "run", needs: func() access.Needs { return runner.RunNeeds(images) }, remarks: []string{
			fmt.Sprintf("For runs with --images=%s.", images),
			fmt.Sprintf(given, "the release") + " With --to, --to-latest or --to-image they are, and creation is allowed in the namespaces of the release only.",
			copiesGrant, jobsRunAs, createsSecrets,
		}},
		{command: "targets", needs: targets.Needs},
		{command: "plan", needs: planner.Needs},
		{command: "drain-plan", needs: draining.Needs},
		{command: "checks", needs: runner.ChecksNeeds},
		{command: "verify", needs: estate.VerifyNeeds},
		{command: "collect", needs: support.CollectNeeds},
		{command: "ack", needs: decide.AckNeeds},
		{command: "accept", needs: decide.AcceptNeeds},
		{command: "cleanup", needs: runs.CleanupNeeds},
		{command: "status", needs: runs.StatusNeeds},
		{command: "history", needs: runs.HistoryNeeds},
		{command: "diff", needs: runs.RecordNeeds},
		{command: "logs", needs: runs.LogsNeeds},
		{command: "cancel", needs: hold.CancelNeeds},
		{command: "conformance", needs: conformance.Needs, remarks: []string{
			fmt.Sprintf(given, "the manifest"),
			copiesGrant, jobsRunAs,
		}},
	}, hubRoles(types.NamespacedName{}, types.NamespacedName{})...)
}

func commandNames() []string {
	var names []string
	for _, each := range commandRoles(image.Manifests) {
		names = append(names, each.command)
	}
	return names
}

func auth(c *cobra.Command, client *cli.Client, flags authFlags, commands []string) error {
	subjects, err := subjects(flags.bind)
	if err != nil {
		return exitcode.BadUsage(err)
	}
	chosen, err := flags.choose(commands)
	if err != nil {
		return exitcode.BadUsage(err)
	}
	if flags.Release != (runner.Target{}) {
		if flags.hive || flags.hosted || !slices.Equal(commands, []string{"run"}) {
			return exitcode.BadUsage(errors.New("--to, --to-latest and --to-image apply to the roles of \"run\" only"))
		}
		needs, err := flags.forRelease(c, client)
		if err != nil {
			return err
		}
		chosen = []commandRole{{command: "run", needs: func() access.Needs { return needs }, remarks: []string{fmt.Sprintf("For runs of one release, with --images=%s.", flags.Images), copiesGrant, jobsRunAs, createsSecrets}}}
	}
	for _, each := range chosen {
		if err := each.write(client.Streams.Out, c.Root().CommandPath(), subjects); err != nil {
			return err
		}
	}
	return nil
}

// choose selects the commands by name, with the roles for the flags.
func (f authFlags) choose(names []string) ([]commandRole, error) {
	chosen, err := f.named(names)
	if err != nil {
		return nil, err
	}
	return f.elsewhere(names, chosen)
}

// named are the commands of these names; without names, all of them.
func (f authFlags) named(names []string) ([]commandRole, error) {
	mode := image.Mode(f.Images)
	if !slices.Contains(image.Modes(), mode) {
		return nil, fmt.Errorf("--images: %q is not one of %q", f.Images, image.Modes())
	}
	all := commandRoles(mode)
	if len(names) == 0 {
		return all, nil
	}
	var chosen []commandRole
	for _, name := range names {
		i := slices.IndexFunc(all, func(each commandRole) bool { return each.command == name })
		if i < 0 {
			return nil, fmt.Errorf("%q is not a command that needs permissions; those are %s", name, strings.Join(commandNames(), ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// subjects parses the values of --bind.
func subjects(texts []string) ([]rbacv1.Subject, error) {
	var all []rbacv1.Subject
	for _, text := range texts {
		kind, name, _ := strings.Cut(text, ":")
		namespace, account, placed := strings.Cut(name, ":")
		switch {
		case kind == "user" && name != "":
			all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name})
		case kind == "group" && name != "":
			all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name})
		case kind == "serviceaccount" && placed && namespace != "" && account != "":
			all = append(all, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account})
		default:
			return nil, fmt.Errorf("--bind: %q is not user:NAME, group:NAME or serviceaccount:NAMESPACE:NAME", text)
		}
	}
	return all, nil
}

// elsewhere are the chosen roles where they are for several clusters, or for a hub.
func (f authFlags) elsewhere(commands []string, chosen []commandRole) ([]commandRole, error) {
	var err error
	if f.hostedCluster != "" {
		if chosen, err = ofHosted(f.hostedCluster, chosen); err != nil {
			return nil, err
		}
	}
	if err := f.checkMembers(commands); err != nil {
		return nil, err
	}
	if f.hive || f.hosted {
		if chosen, err = f.ofMembers(chosen); err != nil {
			return nil, err
		}
	}
	return f.ofHub(chosen)
}

// forRelease are the permissions that a run of one release needs.
func (f authFlags) forRelease(c *cobra.Command, client *cli.Client) (access.Needs, error) {
	reached, err := client.Connect()
	if err != nil {
		return access.Needs{}, err
	}
	options, err := f.Options(c.Context(), client, reached)
	if err != nil {
		return access.Needs{}, err
	}
	display := client.Display(terminal.About{})
	options.Hooks.Observer = terminal.ProgressOnly(display)
	listing, err := runner.Checks(c.Context(), reached, f.Release, options)
	display.Close()
	if err != nil {
		return access.Needs{}, err
	}
	if len(listing.Needs.Required) > 0 {
		return listing.Needs, nil
	}
	var causes []string
	for _, found := range listing.Findings {
		if found.Outcome == preflight.Fail || found.Outcome == preflight.Unknown {
			causes = append(causes, fmt.Sprintf("%s (%s): %s", found.Name, found.Reason, found.Message))
		}
	}
	return access.Needs{}, errors.New("the release could not be read, so the permissions that its checks need are unknown: " + strings.Join(causes, "; "))
}

func (r commandRole) write(w io.Writer, tool string, subjects []rbacv1.Subject) error {
	var page bytes.Buffer
	needs := r.needs()
	comment(&page, fmt.Sprintf("The permissions that %q needs.", tool+" "+strings.Replace(r.command, "fleet-", "fleet ", 1)))
	if optional := needs.OnlyOptional(); len(optional) > 0 {
		comment(&page, "Optional permissions, whose absence is reported where it matters: "+access.Summarize(optional, len(optional))+".")
	}
	for _, remark := range r.remarks {
		comment(&page, remark)
	}
	for _, object := range needs.Roles("oc-preflight-"+r.command+r.suffix, subjects) {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		page.Write(text)
		page.WriteString("---\n")
	}
	_, err := w.Write(page.Bytes())
	return err
}

// comment writes text as a YAML comment in lines of at most 78 characters.
func comment(page *bytes.Buffer, text string) {
	const width = 78
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > width {
			page.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	page.WriteString(line + "\n")
}
