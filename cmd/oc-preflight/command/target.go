package command

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/signature"
)

// targetFlags name the release to ask about.
type targetFlags struct {
	target runner.Target
	force  bool
}

func (f *targetFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.target.Version, "to", "", "Version of the target, as the cluster's available or conditional updates or its history know it.")
	c.Flags().BoolVar(&f.target.Latest, "to-latest", false, "Take the newest of the cluster's available updates.")
	c.Flags().StringVar(&f.target.Image, "to-image", "", "Pull spec of the target's release image, by digest (by tag only with --force).")
	c.Flags().BoolVar(&f.force, "force", false, "Go on with a release that cannot be verified, and past everything that blocks. The verdict says so.")
}

// trustFlags override what the cluster trusts.
type trustFlags struct {
	keyrings, stores, repositories []string
}

func (f *trustFlags) add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.keyrings, "keyring", nil, "File with the public keys that may sign a release; each file given must have signed. Default: the keys that the cluster trusts.")
	c.Flags().StringSliceVar(&f.stores, "signature-store", nil, "URL or directory with signatures. Default: the stores that the cluster names.")
	c.Flags().StringSliceVar(&f.repositories, "repository", nil, "Repository that a release may be signed as an image of, wherever the copy is. Default: quay.io/openshift-release-dev/ocp-release.")
}

// read opens what the flags name. A file that cannot be read is bad input.
func (f *trustFlags) read() ([]signature.Keyring, []signature.Store, error) {
	var keyrings []signature.Keyring
	for _, path := range f.keyrings {
		keyring, err := readKeyring(path)
		if err != nil {
			return nil, nil, usageError(err)
		}
		keyrings = append(keyrings, keyring)
	}
	var stores []signature.Store
	for _, location := range f.stores {
		store, err := signature.NewStore(location)
		if err != nil {
			return nil, nil, usageError(fmt.Errorf("--signature-store: %w", err))
		}
		stores = append(stores, store)
	}
	return keyrings, stores, nil
}

func readKeyring(path string) (signature.Keyring, error) {
	file, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return signature.Keyring{}, fmt.Errorf("--keyring: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	keyring, err := signature.ReadKeyring(path, file)
	if err != nil {
		return signature.Keyring{}, fmt.Errorf("--keyring: %w", err)
	}
	return keyring, nil
}
