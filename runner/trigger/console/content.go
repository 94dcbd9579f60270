package console

import (
	_ "embed"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/runner/trigger/owned"
)

// Name is the name of the objects of the console, and Dashboard that of the ConfigMap in Namespace, where the console
// looks for dashboards.
const (
	Name      = "update-preflight"
	Dashboard = "update-preflight-dashboard"
	Namespace = "openshift-config-managed"

	kindLink         = "ConsoleLink"
	kindNotification = "ConsoleNotification"
	kindDownload     = "ConsoleCLIDownload"
	kindDashboard    = "ConfigMap"

	consoleName = "cluster"
)

func group() schema.GroupVersion {
	return schema.GroupVersion{Group: "console.openshift.io", Version: "v1"}
}

// consoles are the resource whose object consoleName has the URL of the console.
func consoles() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "consoles"}
}

//go:embed dashboard.json
var dashboard string

// all are the objects, each as a set of its own: it comes and goes by itself.
func all(client dynamic.Interface) []owned.Objects {
	one := func(object owned.Object) owned.Objects {
		return owned.Objects{Switch: "console", Client: client, All: []owned.Object{object}, Optional: true}
	}
	return []owned.Objects{
		one(owned.Object{GroupVersionResource: group().WithResource("consolenotifications"), Kind: kindNotification, Name: Name}),
		one(owned.Object{GroupVersionResource: group().WithResource("consolelinks"), Kind: kindLink, Name: Name}),
		one(owned.Object{GroupVersionResource: group().WithResource("consoleclidownloads"), Kind: kindDownload, Name: Name}),
		one(owned.Object{
			GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: kindDashboard, Namespace: Namespace, Name: Dashboard,
		}),
	}
}

// linkContent is in the application menu, whose sections have headings: the others are for help, for what concerns the
// user, and for one namespace. Without a page there is no link.
func linkContent(page string) map[string]any {
	if page == "" {
		return nil
	}
	return map[string]any{"spec": map[string]any{
		"href": page, "text": "Update preflight", "location": "ApplicationMenu", "applicationMenu": map[string]any{"section": "Cluster updates"},
	}}
}

// notificationContent has no link without a page.
func notificationContent(notice Notice, page string) map[string]any {
	if notice.Text == "" {
		return nil
	}
	spec := map[string]any{"text": notice.Text, "location": "BannerTop"}
	if page != "" {
		spec["link"] = map[string]any{"href": page, "text": "Show the preflights"}
	}
	return map[string]any{"spec": spec}
}

// program and checksums are names in a release, and platforms are those for which it has an archive with the program
// (.goreleaser.yaml).
const (
	program   = "oc-preflight"
	checksums = "SHA256SUMS"
	platforms = "linux_amd64 linux_arm64 linux_ppc64le linux_s390x darwin_amd64 darwin_arm64 windows_amd64 windows_arm64"
)

// downloadContent has the files of a version below an address; nil without one.
func downloadContent(base *url.URL, version string) map[string]any {
	if base == nil {
		return nil
	}
	link := func(file, text string) any {
		return map[string]any{"href": base.JoinPath(version, file).String(), "text": text}
	}
	var links []any
	for platform := range strings.FieldsSeq(platforms) {
		extension := ".tar.gz"
		if strings.HasPrefix(platform, "windows") {
			extension = ".zip"
		}
		links = append(links, link(program+"_"+platform+extension, fmt.Sprintf("Download %s for %s", program, strings.Replace(platform, "_", " ", 1))))
	}
	return map[string]any{"spec": map[string]any{
		"displayName": program + " - OpenShift update preflight", "links": append(links, link(checksums, "Checksums")),
		"description": "`oc preflight` checks whether it is safe to update this cluster to a release, and says what to do if it is not.",
	}}
}

// dashboardContent has one key: the console reads one.
func dashboardContent() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"console.openshift.io/dashboard": "true"}},
		"data":     map[string]any{"update-preflight.json": dashboard},
	}
}
