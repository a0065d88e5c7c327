"""The live capacity workbook: one file for each sheet, and the printer of formulas they share."""
