package command

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/words"
)

// withRemedies explains the errors that every verb may return.
func withRemedies(verb *cobra.Command, roles *role.List) {
	for _, each := range verb.Commands() {
		withRemedies(each, roles)
	}
	run := verb.RunE
	if run == nil {
		return
	}
	verb.RunE = func(c *cobra.Command, args []string) error { return explained(c, roles, run(c, args)) }
}

// explained puts what to do before an error about permissions or the connection, the same
// for all verbs.
func explained(c *cobra.Command, roles *role.List, err error) error {
	if err == nil {
		return nil
	}
	if exit, ok := errors.AsType[*exitcode.Error](err); ok && exit.Code != exitcode.Failed {
		return err
	}
	unreached, unreachable := errors.AsType[*url.Error](err)
	switch {
	case isMissing(err):
		return forbidden(c, roles, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server rejects the credentials, which may have expired; log in again with \"oc login\": %w", err)
	case unreachable && !strings.Contains(err.Error(), "could not reach the API server") && isAPI(unreached.URL):
		return fmt.Errorf("could not reach the API server; check the network, and the cluster that --kubeconfig and --context select: %w", err)
	}
	return err
}

// isAPI is true for a request to an API server, and not to a registry or an update service.
func isAPI(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && (strings.HasPrefix(parsed.Path, "/api/") || strings.HasPrefix(parsed.Path, "/apis/") || parsed.Path == "/version")
}

// isMissing is true for a user who lacks a permission, and false for a request that an admission refuses.
func isMissing(err error) bool {
	_, missing := errors.AsType[*access.MissingError](err)
	return missing || apierrors.IsForbidden(err) && strings.Contains(err.Error(), `is forbidden: User "`)
}

// forbidden has what an administrator does about a user who lacks permissions.
func forbidden(c *cobra.Command, roles *role.List, err error) error {
	by := phrase.RequesterOf(c.Context())
	user := cmp.Or(access.Refused(err), by.User)
	if user == access.Anonymous {
		return fmt.Errorf("the API server was sent no credentials; log in with \"oc login\": %w", err)
	}
	administrator, bound := "an administrator", ""
	if by.Server != "" {
		administrator += " of the cluster " + words.Line(by.Server, maxServer)
	}
	if user == "" {
		bound = ", bound with --bind to the user"
	}
	return fmt.Errorf("have %s apply the roles that this prints%s: %s; %w", administrator, bound, authCommand(c, roles, user), err)
}

// maxServer bounds the URL of an API server in a message, in bytes.
const maxServer = 256

// authCommand is the command that prints the roles for a verb and its request: with the flags of the request on
// which they depend. Those for a release are not known for a hosted cluster.
func authCommand(c *cobra.Command, roles *role.List, user string) string {
	needed, ok := roles.Of(c)
	switch {
	case c.Name() == "auth":
		needed, _ = roles.Find("checks") // the roles for a release need what a list of its checks needs
	case !ok:
		needed, _ = roles.Find("run") // attach needs what run needs
	}
	var flags phrase.Flags
	hosted := c.Flags().Changed("hosted-cluster")
	for _, name := range needed.Flags {
		flag := c.Flags().Lookup(name)
		if flag == nil || !flag.Changed || hosted && option.Of(flag).Again == option.Targeting {
			continue
		}
		flags = append(flags, phrase.Flags{{Name: name, Values: phrase.ValuesOf(flag)}}...)
	}
	name := needed.Name
	if needed.Needs == nil { // each cluster needs the roles of the command for one
		name = strings.TrimPrefix(name, role.Fleet)
	}
	return phrase.Of(c).Roles(name, flags, user).Command
}

// flagError is a usage error; it names the flag that an unknown one is most similar to. A mistyped verb before the flag is
// the first error: the flag may be one of the verb that is meant.
func flagError(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
		return flagset.OneVerb(c, args)
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if meant := similarFlag(c.Flags(), unknown.GetSpecifiedName()); meant != "" {
			return exitcode.BadUsage(fmt.Errorf("%w; write --%s", err, meant))
		}
	}
	return exitcode.BadUsage(fmt.Errorf("%w; see %q", err, c.CommandPath()+" --help"))
}

// similarFlag is the flag with the fewest differences from a name, beside case, dashes and
// underscores; empty if more than a third of the name differs.
func similarFlag(flags *pflag.FlagSet, name string) string {
	const share, longest = 3, 64
	if len(name) > longest {
		return ""
	}
	name = bare(name)
	best, least := "", 1+len(name)/share
	flags.VisitAll(func(flag *pflag.Flag) {
		if differs := levenshtein.ComputeDistance(bare(flag.Name), name); differs < least && !flag.Hidden {
			best, least = flag.Name, differs
		}
	})
	return best
}

// bare is the name of a flag without dashes, underscores and case.
func bare(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}
