"""People's tables: from files, frames and arrays to the engine's matrix, in reading order.

notation: how numbers are written, with a decimal point or a decimal comma
cells: one column as numbers or as labels, or a sentence that names the column, the value and the row
frames: frames, dicts, arrays and lists, one column at a time
read_options: what a person can say about how a file is written
decimals: columns of text that are numbers, made numbers
text_files: files of text with columns: encoding, separator, decimal mark
excel: sheets of .xlsx files
reading: tables from files of all kinds
parquet: Parquet files, of which a part is read
stored: large tables, which stay in their files
small_files: the small files beside a table: costs, set-ups, losses
encoding: from columns to scaled numbers, fitted on the training rows; the schema of them
gaps: what is missing as something that is known of a case, and what that is worth
splits: rows for training, validation and test, and problems of them
external: what an existing classifier says of the rows
pictures: the shape of pictures, and patches of them as tests
fit_inputs: what comes to a fit, checked: table, target, weights, what is known, seed
preparation: from a table to the two problems that a fit needs
forms: one answer of a person or a program, checked and encoded
doubts: what can be learned from, but is probably not what was meant
"""
