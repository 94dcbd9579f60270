// Package auth answers: which roles does a user need for which commands?
//
// [New] returns the command "auth", which prints what each command declares (package role).
package auth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/hubs"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/running"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/hosted"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
)

// Options are the arguments and flags of "auth".
type Options struct {
	// Commands are the commands whose roles are printed; empty for all.
	Commands []string
	// Source selects the release that the roles are for, if any.
	Source running.Source
	// HostedCluster is NAMESPACE/NAME of a HostedCluster whose roles are printed as well.
	HostedCluster string
	// Members are true for the flags that select the clusters of a fleet whose roles are printed.
	Members map[string]*bool
	// Placement is NAMESPACE/NAME of the Placement of a hub that the roles are limited to.
	Placement string
	// Keys is configmap://NAMESPACE/NAME of the public keys on a hub.
	Keys string
	// Bind are the subjects that the roles are bound to.
	Bind []string
}

// New returns the command "auth", which prints the roles of the commands that are declared before.
func New(client *cli.Client) *cobra.Command {
	f := Options{Members: map[string]*bool{}}
	c := &cobra.Command{
		Use:   "auth [COMMAND...]",
		Short: "Print the roles that the commands need",
		Long: `Print the ClusterRole and the Roles with exactly the permissions that a command needs; without COMMAND, the roles of all commands. Nothing is created.

A run creates temporary read-only roles for the checks of a release, and the API server rejects a role with permissions that its creator does not have. With --to, --to-latest or --to-image the release is read with your own permissions, and the roles are for that release: they include the rules of its roles, and allow creation in its namespaces only. A run with --images=pull needs more permissions: pass the same --images here.`,
		Example: `  # For the users who run preflights of one release
  oc preflight auth run --to 4.19.3 --bind group:update-team | oc apply -f -

  # The same with checks of your own
  oc preflight auth run --to 4.19.3 --checks ./site-checks --bind group:update-team

  # For runs with --images=pull
  oc preflight auth run --images pull

  # For runs that rehearse the writes of the update; they are worth as much as cluster-admin
  oc preflight auth run --rehearse --bind user:admin

  # For a hosted cluster: the roles of the management cluster, then the roles of the guest
  oc preflight auth run --hosted-cluster clusters/example

  # For the clusters of Hive: the roles in the cluster that has their ClusterDeployments
  oc preflight auth run --hive

  # For users who read what the clusters of a hub report
  oc preflight auth fleet-hub fleet-gate --placement fleets/production --bind group:update-team

  # For a ServiceAccount that only verifies
  oc preflight auth verify --bind serviceaccount:ci:verifier`,
		ValidArgs: names(client.Roles.All()),
		RunE: func(c *cobra.Command, args []string) error {
			f.Commands = args
			return flagset.Execute(c, f, func() error { return auth(c, client, f) })
		},
	}
	f.Source.Add(c)
	f.Source.AddImages(c)
	of := func(flag string) string { return " Applies to " + strings.Join(client.Roles.With(flag), ", ") + "." }
	f.Source.Rehearse.Add(c, "Add the permissions of --rehearse."+of("rehearse"))
	c.Flags().StringVar(&f.HostedCluster, "hosted-cluster", "",
		"NAMESPACE/NAME of a HostedCluster: print the roles of its management cluster, then the roles of the guest."+of("hosted-cluster"))
	for _, source := range client.Roles.Sources() {
		f.Members[source.Flag] = c.Flags().Bool(source.Flag, false,
			fmt.Sprintf("Print the roles of \"fleet COMMAND --%s\" in %s.", source.Flag, source.Cluster)+of(source.Flag))
		option.Declare(c.Flags(), option.Option{Group: option.Clusters, Effect: option.OnClusters}, source.Flag)
	}
	c.Flags().StringVar(&f.Placement, "placement", "", "NAMESPACE/NAME of a Placement of a hub: print the roles for it alone."+of("placement"))
	c.Flags().StringVar(&f.Keys, "keys", "",
		"configmap://NAMESPACE/NAME of the public keys on a hub: add the permission to read it."+of("keys"))
	c.Flags().StringArrayVar(&f.Bind, "bind", nil, "Bind the roles to user:NAME, group:NAME or serviceaccount:NAMESPACE:NAME.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay}, "bind")
	option.Declare(c.Flags(), option.Option{Group: option.Hosted, Effect: option.OnClusters, Again: option.Reaching}, "hosted-cluster")
	option.Declare(c.Flags(), option.Option{Group: option.Clusters, Effect: option.OnAnswer}, "placement", "keys")
	return c
}

func names(roles []role.Named) []string {
	all := make([]string, 0, len(roles))
	for _, each := range roles {
		all = append(all, each.Name)
	}
	return all
}

func auth(c *cobra.Command, client *cli.Client, f Options) error {
	subjects, err := subjects(f.Bind)
	if err != nil {
		return exitcode.BadUsage(err)
	}
	request, err := f.request()
	if err != nil {
		return exitcode.BadUsage(err)
	}
	chosen, err := chosen(c, &client.Roles, f.Commands)
	if err != nil {
		return exitcode.BadUsage(err)
	}
	if f.Source.Target.Release != (runner.Target{}) {
		needs, err := f.forRelease(c, client)
		if err != nil {
			return err
		}
		request.Release = &needs
	}
	pages, err := f.pages(&client.Roles, chosen, request)
	if err != nil {
		return exitcode.BadUsage(err)
	}
	for _, each := range pages {
		if err := each.write(client.Streams.Out, c.Root().CommandPath(), subjects); err != nil {
			return err
		}
	}
	return nil
}

// chosen are the roles of the commands, or of all without one. Each of them must depend on the flags that are given:
// a role that does not would be taken for one that is limited by them.
func chosen(c *cobra.Command, roles *role.List, commands []string) ([]role.Named, error) {
	all := roles.All()
	if len(commands) > 0 {
		all = nil
	}
	for _, name := range commands {
		found, ok := roles.Find(name)
		if !ok || found.Needs == nil {
			return nil, fmt.Errorf("%q is not a command that needs permissions; the commands are %s", name, strings.Join(names(roles.All()), ", "))
		}
		all = append(all, found)
	}
	return all, applies(c, roles, all)
}

func applies(c *cobra.Command, roles *role.List, chosen []role.Named) (err error) {
	c.Flags().Visit(func(flag *pflag.Flag) {
		with := roles.With(flag.Name)
		for _, each := range chosen {
			// The images of a run are of no matter to a command that runs none.
			if err == nil && flag.Name != "images" && len(with) > 0 && !slices.Contains(with, each.Name) {
				err = fmt.Errorf("--%s applies to the roles of %s, and not of %s; name the commands", flag.Name, strings.Join(with, ", "), each.Name)
			}
		}
	})
	if c.Flags().Changed("hosted-cluster") && (c.Flags().Changed("to") || c.Flags().Changed("to-latest") || c.Flags().Changed("to-image")) {
		return errors.New("the roles for one release are not known for a hosted cluster; leave out the release, or --hosted-cluster")
	}
	return err
}

// forRelease are the permissions that a run of one release needs.
func (f Options) forRelease(c *cobra.Command, client *cli.Client) (access.Needs, error) {
	reached, err := client.Connect()
	if err != nil {
		return access.Needs{}, err
	}
	options, err := f.Source.Options(c.Context(), client, reached, flagset.Judge{})
	if err != nil {
		return access.Needs{}, err
	}
	display := client.Display(terminal.About{})
	options.Hooks.Observer = terminal.ProgressOnly(display)
	listing, err := runner.Checks(c.Context(), reached, f.Source.Target.Release, options)
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
	return access.Needs{}, errors.New("the release could not be read, so the permissions that its checks need are unknown: " +
		strings.Join(causes, "; "))
}

// page is the role of a command in one cluster. The suffix is added to the names of the roles, so that they do not
// replace the roles of the cluster itself.
type page struct {
	name, suffix string
	role.Part
}

// request limits the roles by the flags.
func (f Options) request() (role.Request, error) {
	request := role.Request{Images: image.Mode(f.Source.Images), Rehearsal: f.Source.Rehearse.Mode()}
	if err := f.Source.Rehearse.Check(); err != nil {
		return request, err
	}
	if !slices.Contains(image.Modes(), request.Images) {
		return request, fmt.Errorf("--images: %q is not one of %q", f.Source.Images, image.Modes())
	}
	var err error
	if f.Placement != "" {
		if request.Placement, err = hubs.PlacementOf(f.Placement); err != nil {
			return request, err
		}
	}
	if f.Keys != "" {
		if request.Keys, err = hubs.KeysOf(f.Keys); err != nil {
			return request, err
		}
	}
	return request, err
}

// pages are the roles of the commands, in each cluster in which they need some.
func (f Options) pages(roles *role.List, chosen []role.Named, request role.Request) ([]page, error) {
	var pages []page
	for _, each := range chosen {
		made, err := f.pagesOf(roles, each, request)
		if err != nil {
			return nil, err
		}
		pages = append(pages, made...)
	}
	return pages, nil
}

func (f Options) pagesOf(roles *role.List, of role.Named, request role.Request) ([]page, error) {
	if members := f.ofMembers(roles, of); len(members) > 0 {
		return members, nil
	}
	own := page{name: of.Name, Part: role.Part{Needs: of.Needs(request)}}
	if of.Remarks != nil {
		own.Remarks = of.Remarks(request)
	}
	if f.HostedCluster == "" {
		return []page{own}, nil
	}
	management, err := inManagement(f.HostedCluster, of)
	own.Remarks = append(slices.Clone(own.Remarks), "In the guest of HostedCluster "+f.HostedCluster+".")
	return []page{management, own}, err
}

// inManagement is the role of a command in the management cluster of a hosted cluster.
func inManagement(text string, of role.Named) (page, error) {
	name, err := flagset.NamespacedName("--hosted-cluster", text)
	if err != nil {
		return page{}, err
	}
	part := of.Management(name)
	needs := hosted.Reads(name.Namespace, name.Name).And(part.Needs)
	needs.Optional = append(slices.Clone(needs.Optional), check.Get("", "secrets", name.Namespace, name.Name+"-admin-kubeconfig"))
	remarks := []string{
		"In the management cluster of HostedCluster " + text + ".",
		"The Secret is named by status.kubeconfig of the HostedCluster, by default NAME-admin-kubeconfig. It has the credentials of " +
			"an administrator of the guest; with --guest-kubeconfig it is not read.",
	}
	return page{
		name: of.Name, suffix: "-" + name.Namespace + "-" + name.Name,
		Part: role.Part{Needs: needs, Remarks: append(remarks, part.Remarks...)},
	}, nil
}

// ofMembers are the roles of the command for many clusters, in the clusters whose objects name them; none without a
// flag that selects them.
func (f Options) ofMembers(roles *role.List, of role.Named) []page {
	many, _ := roles.Find(role.Fleet + of.Name) // where a flag is given, there is one
	var pages []page
	for _, each := range many.Members {
		if *f.Members[each.Flag] {
			pages = append(pages, page{name: many.Name, suffix: "-" + each.Flag, Part: each.Part})
		}
	}
	return pages
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

func (p page) write(w io.Writer, tool string, subjects []rbacv1.Subject) error {
	var text bytes.Buffer
	comment(&text, fmt.Sprintf("The permissions that %q needs.", tool+" "+strings.Replace(p.name, role.Fleet, "fleet ", 1)))
	if optional := p.Needs.OnlyOptional(); len(optional) > 0 {
		comment(&text, "Optional permissions; a command reports which of them it lacked: "+access.Summarize(optional, len(optional))+".")
	}
	for _, remark := range p.Remarks {
		comment(&text, remark)
	}
	for _, object := range p.Needs.Roles("oc-preflight-"+p.name+p.suffix, subjects) {
		written, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		text.Write(written)
		text.WriteString("---\n")
	}
	_, err := w.Write(text.Bytes())
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
