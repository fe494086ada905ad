"""Part of the package: releases."""
