package auth

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/hubs"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/runner/image"
)

// page is the role of a command in one cluster. The suffix is of the names of the roles, so that they do not replace
// those of the cluster itself.
type page struct {
	name, suffix string
	role.Part
}

// request limits the roles by the flags.
func (f flags) request() (role.Request, error) {
	request := role.Request{Images: image.Mode(f.source.Images), Rehearsal: f.source.Rehearse.Mode()}
	if err := f.source.Rehearse.Check(); err != nil {
		return request, err
	}
	if !slices.Contains(image.Modes(), request.Images) {
		return request, fmt.Errorf("--images: %q is not one of %q", f.source.Images, image.Modes())
	}
	var err error
	if f.placement != "" {
		if request.Placement, err = hubs.PlacementOf(f.placement); err != nil {
			return request, err
		}
	}
	if f.keys != "" {
		if request.Keys, err = hubs.KeysOf(f.keys); err != nil {
			return request, err
		}
	}
	return request, err
}

// pages are the roles of the commands, in each cluster in which they need some.
func (f flags) pages(roles *role.List, chosen []role.Named, request role.Request) ([]page, error) {
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

func (f flags) pagesOf(roles *role.List, of role.Named, request role.Request) ([]page, error) {
	if members := f.ofMembers(roles, of); len(members) > 0 {
		return members, nil
	}
	own := page{name: of.Name, Part: role.Part{Needs: of.Needs(request)}}
	if of.Remarks != nil {
		own.Remarks = of.Remarks(request)
	}
	if f.hostedCluster == "" {
		return []page{own}, nil
	}
	management, err := inManagement(f.hostedCluster, of)
	own.Remarks = append(slices.Clone(own.Remarks), "In the guest of HostedCluster "+f.hostedCluster+".")
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
		"The Secret is the one that status.kubeconfig of the HostedCluster names, by default NAME-admin-kubeconfig. It has the credentials of an administrator of the guest: with --guest-kubeconfig it is not read.",
	}
	return page{name: of.Name, suffix: "-" + name.Namespace + "-" + name.Name, Part: role.Part{Needs: needs, Remarks: append(remarks, part.Remarks...)}}, nil
}

// ofMembers are the roles of the command for many clusters, in the clusters whose objects name them; none without a
// flag that selects them.
func (f flags) ofMembers(roles *role.List, of role.Named) []page {
	many, _ := roles.Find(role.Fleet + of.Name) // where a flag is given, there is one
	var pages []page
	for _, each := range many.Members {
		if *f.members[each.Flag] {
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
		comment(&text, "Optional permissions, whose absence is reported where it matters: "+access.Summarize(optional, len(optional))+".")
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
