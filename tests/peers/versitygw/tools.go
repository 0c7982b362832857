// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools names the packages that tools/nodensdev/env/goprograms.py builds from this module, so
// that go.mod and go.sum pin what they need. Nothing here is compiled.
package tools

import _ "github.com/versity/versitygw/cmd/versitygw"
