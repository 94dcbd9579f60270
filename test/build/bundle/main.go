// Bundle writes the OLM bundle and the file-based catalog of the controller, from manifests/.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/openshift/update-preflight/test/bundle"
)

func main() {
	var options bundle.Options
	flag.StringVar(&options.Manifests, "manifests", "manifests", "the directory of the kustomization")
	flag.StringVar(&options.Version, "version", "", "the version, vX.Y.Z")
	flag.StringVar(&options.Image, "image", "", "the image of the controller, by digest")
	flag.StringVar(&options.BundleImage, "bundle", "", "the image of the bundle, by digest; OLM v0 needs none")
	directory := flag.String("o", "bin/bundle", "the directory to write")
	flag.Parse()
	made, err := bundle.Generate(options)
	if err == nil {
		err = made.Write(*directory)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stdout, "%s has the bundle of %s, and its catalog.\n", *directory, options.Version)
	for _, each := range made.Widened {
		fmt.Fprintf(os.Stdout, "Granted in all namespaces, by the manifests in %s only: %s\n", each.Namespace, each.Permission)
	}
}
